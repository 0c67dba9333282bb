"""`vcachediag replay` on a real vLLM: healthy and faulty plugins."""

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]
TWICE = "01_same_request_twice/requests.jsonl"
SINGLE_TAIL = "01_same_request_twice/single_token_tail.jsonl"
OTHER_IMAGE = "02_same_text_other_image/requests.jsonl"
HEALTHY = "glyphocr"
POSITIONS = "plugins/faults/positions.py"
NEVER_STOPS = "plugins/faults/never_stops.py"
DTYPES = ("float32", "bfloat16")
#: Runner V2 goes through Triton's interpreter here: slow, so once.
ENGINES = [("float32", "V1"), ("bfloat16", "V1"), ("float32", "V2")]


def run_of(report, name):
    """The entry of one run in the JSON report."""
    return next(run for run in report["requests"] if run["run"] == name)


@pytest.mark.parametrize(("dtype", "runner"), ENGINES)
def test_healthy_plugin_is_same(replay, dtype, runner):
    """A healthy plugin gives SAME and 0, with the same request as a hit."""
    code, report = replay(TWICE, HEALTHY, dtype, runner=runner)

    assert (0, "SAME") == (code, report["status"])
    assert 96 == run_of(report, "cached/r1#2")["cached_tokens"]
    assert report["environment"]["engine"]["runner"].startswith(runner)


@pytest.mark.parametrize("dtype", DTYPES)
def test_other_images_are_same(replay, dtype):
    """Sixteen images behind one text: the image is in the key, so every answer is its own."""
    code, report = replay(OTHER_IMAGE, HEALTHY, dtype)

    assert (0, "SAME") == (code, report["status"])
    assert 16 == len({run["text"] for run in report["requests"] if run["lane"] == "reference"})
    assert [] == [note for note in report["notes"] if "expected text" in note]


@pytest.mark.parametrize(("dtype", "runner"), ENGINES)
def test_never_stops_is_found(replay, dtype, runner):
    """The reporter's symptom: right the first time, then right at first and without an end."""
    code, report = replay(TWICE, NEVER_STOPS, dtype, runner=runner)
    cold, hit = run_of(report, "cached/r1#1"), run_of(report, "cached/r1#2")
    truth = run_of(report, "reference/r1")

    assert (1, "DIVERGED") == (code, report["status"])
    assert (truth["text"], "stop", "same") == (cold["text"], cold["finish"], cold["outcome"])
    assert ("length", 256, 96) == (hit["finish"], hit["output_tokens"], hit["cached_tokens"])
    assert hit["text"].startswith(truth["text"])
    assert 10 < hit["split"] < 256


@pytest.mark.parametrize(("dtype", "runner"), ENGINES)
def test_positions_fault_is_found(replay, dtype, runner):
    """Positions counted from 0 on a partial prefill: the first answer is right, the hit is not."""
    code, report = replay(TWICE, POSITIONS, dtype, runner=runner)

    assert (1, "DIVERGED") == (code, report["status"])
    assert "same" == run_of(report, "cached/r1#1")["outcome"]
    assert run_of(report, "cached/r1#2")["text"] != run_of(report, "reference/r1")["text"]


def test_single_token_tail_is_said(replay):
    """A hit that leaves one token hides the positions fault; the report says what was exercised."""
    code, report = replay(SINGLE_TAIL, POSITIONS, "float32")

    assert (0, "SAME") == (code, report["status"])
    assert [1] == report["coverage"]["tails"]
    assert "Only a single-token tail was exercised" in report["says"]


@pytest.mark.parametrize("plugin", [NEVER_STOPS, POSITIONS])
def test_faults_need_prefix_caching(plain, plugin):
    """In a plain script both faults answer right with prefix caching off, also when the request
    comes again; with it on only the first answer is right.
    """
    model = "plugins/glyphocr/model"
    right = plain("example", model)["tokens"][0]
    uncached = plain("uncached", model, plugin=plugin)["tokens"]
    first, second = plain("example", model, plugin=plugin)["tokens"]

    assert [right, right] == uncached
    assert right == first
    assert right != second


def test_tokens_equal_a_plain_script(plain, replay):
    """The cached lane gives the tokens that a plain vLLM script gives for the same requests."""
    _, report = replay(TWICE, HEALTHY, "float32")
    tokens = [run_of(report, f"cached/r1#{attempt}")["token_ids"] for attempt in (1, 2)]

    assert plain("example", "plugins/glyphocr/model")["tokens"] == tokens


def test_a_forward_without_names_is_seen(replay):
    """A model whose `forward` takes `**anything` is watched like any other."""
    code, report = replay(TWICE, "tests/engine/plugins/wrapped_forward.py", "float32")

    assert (0, "SAME") == (code, report["status"])
    assert [] == report["not_observed"]
    assert [96] == [each["first_position"][0] for each in report["forwards"]
                    if each["run"] == "cached/r1#2" and each["num_tokens"] > 1]


def test_no_hit_is_inconclusive(replay):
    """A block longer than the prompt: nothing is exercised, so nothing is judged."""
    code, report = replay(TWICE, HEALTHY, "float32", "--block-size", "128")

    assert (3, "INCONCLUSIVE") == (code, report["status"])
