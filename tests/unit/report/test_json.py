"""The JSON report: its keys, its bytes, and figures that JSON cannot hold."""

import json
from typing import Any

import pytest

from vcachediag import __version__
from vcachediag.analysis.records import Evidence, Floor
from vcachediag.report import render_json
from vcachediag.trace.records import FinishedRecord

from .builders import comparison, engine, finding, healthy_runs, pair, row, trace, verdict
from .scenarios import SCENARIOS, SHOWN, diverged, failed_trace, hostile, without_runs


def refuse(constant: str) -> None:
    """Fail on a literal that is not JSON."""
    raise ValueError(constant)


def loaded(text: str) -> Any:
    """The object, read by a parser that knows no NaN or Infinity."""
    return json.loads(text, parse_constant=refuse)


def test_keys_stand_in_declared_order() -> None:
    """The top-level keys are a contract, in their order."""
    expected = [
        "schema", "tool", "status", "exit_code", "headline", "says", "findings", "notes",
        "ruled_out", "not_observed", "coverage", "floor", "lanes", "requests", "shown",
            "blocks", "lookups", "encoder", "evictions", "forwards", "hooks",
        "next_steps", "minimal_pair", "overrides", "environment",
    ]
    assert expected == list(loaded(render_json(diverged(), trace())))


def test_head() -> None:
    """Schema, tool, status and exit code stand first, so that a script finds them by eye."""
    report = loaded(render_json(diverged(), trace()))

    assert {
        "schema": 1,
        "tool": {"name": "vcachediag", "version": __version__},
        "status": "DIVERGED",
        "exit_code": 1,
    } == dict(list(report.items())[:4])


def test_finding() -> None:
    """A finding has every field of its record, and its evidence numbered."""
    found = finding(evidence=(Evidence(number=1, text="Logits differ."),))

    report = loaded(render_json(diverged(findings=(found,)), trace()))

    expected = [{
        "code": "101", "name": "positions-wrong-on-resume", "cache": "prefix",
        "confidence": "confirmed", "run": "cached/r1#2", "request": "r1",
        "says": "positions count from 0", "evidence": [{"number": 1, "text": "Logits differ."}],
    }]
    assert expected == report["findings"]


def test_ruled_out() -> None:
    """What was ruled out names its evidence."""
    report = loaded(render_json(diverged(ruled_out=(("noise", "E1"),)), trace()))

    expected = [{"what": "noise", "evidence": "E1"}]
    assert expected == report["ruled_out"]


def test_request() -> None:
    """One entry a run, with its comparison and its tokens."""
    finished = FinishedRecord(run=SHOWN, token_ids=(97, 98), text="ab", reason="length")

    report = loaded(render_json(diverged(), trace(events=(engine(), finished))))

    expected = {
        "id": "r1", "lane": "cached", "attempt": 2, "run": "cached/r1#2", "prompt_tokens": 98,
        "cached_tokens": 96, "prefill": [2], "against": "reference/r1", "outcome": "splits",
        "split": 17, "first_beyond": 0, "worst": 0.23, "worst_absolute": 2.11, "why": "",
        "finish": "length", "output_tokens": 256, "token_ids": [97, 98], "text": "abc",
        "error": None,
    }
    assert expected == report["requests"][3]


def test_figures_that_json_cannot_hold() -> None:
    """Infinity and NaN are strings, what was not observed is null."""
    floor = Floor(unit=1e-7, repeat=float("nan"), decode=None, bound=float("inf"))

    report = loaded(render_json(verdict(floor=floor), trace()))

    expected = {"unit": 1e-7, "repeat": "nan", "decode": None, "bound": "inf"}
    assert expected == report["floor"]


def test_step() -> None:
    """A step has both rows; a stop token's missing logit is `-inf`, a row that is not is null."""
    right = row(0, "a", stop_logit=None)
    compared = comparison(steps=(pair(0, None, right, float("inf"), beyond=True),))

    report = loaded(render_json(verdict(runs=healthy_runs(comparison=compared), shown=SHOWN),
                                trace()))

    expected = [{
        "index": 0,
        "max_difference": "inf",
        "relative": "inf",
        "beyond_floor": True,
        "left": None,
        "right": {
            "token_id": 97, "text": "a", "margin": 3.0,
            "top": [{"token_id": 97, "text": "a", "logit": 9.0},
                    {"token_id": 77, "text": "M", "logit": 6.0}],
            "stops": [{"token_id": 2, "logit": "-inf", "rank": 30}], "digest": "0000",
        },
    }]
    assert expected == report["shown"]["steps"]


def test_environment_of_a_failed_recording() -> None:
    """Without an engine the environment still says what was asked and how it ended."""
    environment = loaded(render_json(without_runs(), failed_trace()))["environment"]

    expected = ("requests.jsonl", None, "out of memory")
    assert expected == (
        environment["header"]["request_file"], environment["engine"],
        environment["footer"]["detail"],
    )


def test_overrides() -> None:
    """Overrides are listed with what the user gave."""
    expected = [{
        "name": "enforce_eager", "given": "default", "used": "True",
        "why": "the hooks see nothing inside a compiled graph",
    }]
    assert expected == loaded(render_json(verdict(), trace()))["overrides"]


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_bytes_are_stable_and_plain(name: str) -> None:
    """The same input gives the same ASCII bytes with one newline at the end."""
    shown, recorded, _ = SCENARIOS[name]

    text = render_json(shown, recorded)

    assert text == render_json(shown, recorded)
    assert text.isascii()
    assert text.endswith("}\n")
    assert shown.status == loaded(text)["status"]


def test_texts_are_whole() -> None:
    """Text is data in JSON: nothing is shortened or escaped twice."""
    report = loaded(render_json(hostile(), trace()))

    expected = "gave \u202eabc\nand [/red] instead of 漢字"
    assert expected == report["says"]
