"""Verdicts of whole small traces."""

import math

import pytest

from tests.unit.analysis.builders import (
    HIGHEST,
    PROMPT,
    STOP,
    TOKENS,
    UNIT,
    cold,
    decode,
    references,
    run,
    trace,
)
from vcachediag.analysis.align import join
from vcachediag.analysis.coverage import cover
from vcachediag.analysis.stop import never_stops
from vcachediag.analysis.verdict import judge
from vcachediag.trace.records import FinishedRecord, ImageSpan

FAR = {1: {7: 7.5}}


def hit(**changes: object) -> list:
    """The second cached run, with a hit of 16 tokens."""
    return run("cached", attempt=2, **{"cached": 16, **changes})


def test_same() -> None:
    """Equal rows with a hit are SAME."""
    verdict = judge(trace(references(), cold(), hit()))
    assert ("SAME", 0, "2 runs, 1 with a hit; every logit within the floor", None) == (
        verdict.status, verdict.exit_code, verdict.headline, verdict.shown)
    assert () == verdict.not_observed
    assert () == verdict.notes
    assert (0.0, 0.0) == (verdict.floor.repeat, verdict.floor.decode)


@pytest.mark.parametrize(("cached", "said"), [(PROMPT - 1, True), (PROMPT - 4, False)])
def test_same_says_single_token_tail(cached: int, said: bool) -> None:
    """SAME admits when every hit left one token only, and not otherwise."""
    verdict = judge(trace(references(), cold(), hit(cached=cached)))
    assert "SAME" == verdict.status
    assert said == ("Only a single-token tail was exercised" in verdict.says)


def test_same_within_the_floor() -> None:
    """Rows that differ by less than the floor, with equal tokens, are SAME."""
    verdict = judge(trace(references(), cold(), hit(changes={1: {6: HIGHEST * (1 + 3 * UNIT)}})))
    assert "SAME" == verdict.status


def test_diverged_with_split() -> None:
    """Rows beyond the floor and another token are DIVERGED, and show step, token and run."""
    verdict = judge(trace(references(), cold(), hit(tokens=(5, 7, STOP))))
    assert ("DIVERGED", 1, "cached/r1#2") == (verdict.status, verdict.exit_code, verdict.shown)
    assert ("cached/r1#2 (cache hit of 16 of 20 tokens) splits from its uncached run at output "
            "token 1.") == verdict.says
    finding = verdict.findings[0]
    assert (None, "prefix") == (finding.code, finding.cache)
    assert list(range(1, len(finding.evidence) + 1)) == [e.number for e in finding.evidence]
    assert ["rounding", "a forward pass that changes by itself",
            "the request's settings"] == [what for what, _ in verdict.ruled_out]


def test_rows_after_the_split_do_not_count() -> None:
    """After the split the histories differ, so the rows there are not compared."""
    verdict = judge(trace(references(), cold(), hit(tokens=(5, 7, 8))))
    comparison = next(r for r in verdict.runs if r.run == "cached/r1#2").comparison
    assert comparison is not None
    assert [True, True, False] == [s.relative is not None for s in comparison.steps]
    assert (1, 1) == (comparison.split, comparison.first_beyond)


def test_diverged_with_equal_tokens() -> None:
    """Rows beyond the floor are DIVERGED even if every token is equal."""
    verdict = judge(trace(references(), cold(), hit(changes=FAR)))
    assert "DIVERGED" == verdict.status
    assert ("cached/r1#2 (cache hit of 16 of 20 tokens) gives the tokens of its uncached run, "
            "but from other logits.") == verdict.says


def test_never_stops() -> None:
    """A run to its limit where the uncached one stops is said to never stop."""
    endless = hit(tokens=(5, 6, *[7] * 5), reason="length")
    verdict = judge(trace(references(), cold(), endless))
    assert "DIVERGED" == verdict.status
    assert verdict.says.endswith("at output token 2 and never stops: 7 tokens, its limit.")
    assert any("The uncached run stops by itself after 3 tokens; this one runs to its limit of 7. "
               f"Its stop token never ranks above {STOP + 1} of 40 (step 0)." == e.text
               for e in verdict.findings[0].evidence)


@pytest.mark.parametrize(("own", "truth", "expected"), [
    ("length", "stop", True), ("length", "length", False), ("stop", "stop", False)])
def test_never_stops_needs_a_stop(own: str, truth: str, expected: bool) -> None:
    """Only a limit against a stop is endless."""
    joined = join(trace(run("reference", reason=truth), hit(reason=own)))
    assert expected == never_stops(joined.runs["cached/r1#2"], joined.runs["reference/r1"])


def test_benign_near_tie() -> None:
    """Another token from rows within the floor is BENIGN."""
    below = HIGHEST * (1 - UNIT)
    tie = {1: {6: HIGHEST, 7: below}}
    same = run("reference", changes=tie) + run("reference-2", changes=tie) + decode()
    verdict = judge(trace(same, run("cached", changes=tie),
                          hit(tokens=(5, 7, STOP), changes={1: {6: below, 7: HIGHEST}})))
    assert ("BENIGN", 0, "cached/r1#2") == (verdict.status, verdict.exit_code, verdict.shown)
    assert verdict.says.startswith("cached/r1#2 takes another token at step 1,")


@pytest.mark.parametrize("again", [
    {"changes": FAR}, {"tokens": (5, 7, STOP)}, {"changes": {0: {30: -math.inf}}},
    {"error": "boom", "tokens": (5,)}])
def test_unstable_reference(again: dict) -> None:
    """A reference that does not repeat itself makes everything INCONCLUSIVE, even a split."""
    verdict = judge(trace(run("reference"), run("reference-2", **again), decode(), cold(),
                          hit(tokens=(5, 8, STOP))))
    assert ("INCONCLUSIVE", 3, "VCD902 baseline-unstable", "reference-2/r1") == (
        verdict.status, verdict.exit_code, verdict.headline, verdict.shown)


def test_no_hit() -> None:
    """Without a hit nothing was put to the test: exit 3."""
    verdict = judge(trace(references(), cold()))
    assert ("INCONCLUSIVE", 3, "nothing was exercised") == (
        verdict.status, verdict.exit_code, verdict.headline)
    assert ("Send requests that share a start, or send each twice (--repeat 2).",
            ) == verdict.next_steps


def test_no_hit_of_a_short_prompt() -> None:
    """A prompt of no more than a block is named as the reason for no hit."""
    lanes = [run(lane, prompt=4) for lane in ("reference", "reference-2", "cached")]
    verdict = judge(trace(*lanes, prompt=4))
    assert "nothing was exercised" == verdict.headline
    assert verdict.next_steps[0].startswith("The longest prompt has 4 tokens and a block has 4:")


@pytest.mark.parametrize("missing", [(0,), (2,), (0, 1, 2)])
def test_missing_rows(missing: tuple[int, ...]) -> None:
    """Rows that were not seen are never taken as equal."""
    verdict = judge(trace(references(), cold(), hit(missing=missing)))
    assert ("INCONCLUSIVE", 3) == (verdict.status, verdict.exit_code)
    assert [("cached/r1#2", "some rows of logits were not seen")] == [
        (blind.what, blind.why) for blind in verdict.not_observed]


def test_no_reference() -> None:
    """Without a reference lane there is nothing to compare with."""
    verdict = judge(trace(cold(), hit()))
    assert "INCONCLUSIVE" == verdict.status
    assert "A cached run could not be compared: there is no reference." == verdict.says


def test_empty_trace() -> None:
    """A trace without a single event is INCONCLUSIVE, not an exception."""
    verdict = judge(trace(engine=None))
    assert ("INCONCLUSIVE", 3, ()) == (verdict.status, verdict.exit_code, verdict.runs)
    assert ["the engine's settings"] == [blind.what for blind in verdict.not_observed]


@pytest.mark.parametrize("how", [{"cached": 4}, {"prefill": (12, 8)}])
def test_reference_not_whole(how: dict) -> None:
    """A reference with cached tokens or a cut prefill is no truth."""
    verdict = judge(trace(run("reference", **how), run("reference-2"), decode(), cold(), hit()))
    assert "INCONCLUSIVE" == verdict.status
    assert "reference/r1 was not computed whole and uncached" in verdict.says
    assert "reference/r1 computed whole and uncached" in [b.what for b in verdict.not_observed]


@pytest.mark.parametrize("tokens", [(), (5,), TOKENS])
def test_failed_run(tokens: tuple[int, ...]) -> None:
    """A cached run that ended with an error is DIVERGED, however far it got."""
    verdict = judge(trace(references(), cold(), hit(tokens=tokens, error="boom", reason="error")))
    assert ("DIVERGED", 1) == (verdict.status, verdict.exit_code)
    assert verdict.says.endswith("fails where its uncached run does not: boom.")


def test_failed_reference() -> None:
    """A reference that failed cannot accuse the cache."""
    verdict = judge(trace(run("reference", tokens=(), error="boom"), cold(), hit()))
    assert "INCONCLUSIVE" == verdict.status
    assert "reference/r1 failed: boom" in verdict.says


def test_unfinished_run() -> None:
    """A run without an end, as in a killed recording, is not judged."""
    torn = [event for event in hit() if not isinstance(event, FinishedRecord)]
    verdict = judge(trace(references(), cold(), torn))
    assert "INCONCLUSIVE" == verdict.status
    assert "cached/r1#2 did not finish" in verdict.says


@pytest.mark.parametrize(("expect", "count"), [("ab", 0), ("other", 1), (None, 0)])
def test_expect(expect: str | None, count: int) -> None:
    """An uncached answer that is not the expected text is noted as the model's own."""
    verdict = judge(trace(references(), cold(), hit(), expect=expect))
    assert "SAME" == verdict.status
    assert count == len(verdict.notes)
    assert all(note.startswith("r1: the uncached answer is not the expected") for note in
               verdict.notes)


def test_decode_beyond_rounding() -> None:
    """A decode probe far from the reference is noted, and widens the floor to its cap only."""
    verdict = judge(trace(run("reference"), run("reference-2"), decode({7: 7.5}), cold(),
                          hit(changes={1: {6: HIGHEST * (1 + 65 * UNIT)}})))
    assert 64 * UNIT == verdict.floor.bound
    assert "DIVERGED" == verdict.status
    assert ["The same token gives other logits in decode"] == [note[:43] for note in verdict.notes]


def test_decode_widens_the_floor() -> None:
    """What decode alone changes, within rounding, is not held against the cache."""
    near = HIGHEST * (1 + 10 * UNIT)
    runs = [run("reference"), run("reference-2"), cold(), hit(changes={1: {6: near}})]
    assert ["DIVERGED", "SAME"] == [judge(trace(*runs, decode())).status,
                                    judge(trace(*runs, decode({STOP: near}))).status]


def test_coverage() -> None:
    """Hits, tails, cuts in images and cut prefills are counted."""
    joined = join(trace(
        references(), run("cached", prefill=(12, 8)), hit(), run("cached", attempt=3, cached=8),
        images=[ImageSpan(modality="image", identifier="x", offset=6, length=10)]))
    coverage = cover(joined)
    assert (3, 2, (4, 12), 1, 1, 1) == (
        coverage.runs, coverage.hits, coverage.tails, coverage.cuts_in_images,
        coverage.cuts_in_text, coverage.chunked_prefills)


def test_unknown_request_is_left_out() -> None:
    """Records of a run whose request is not in the trace are left out."""
    joined = join(trace(run("reference"), run("reference", request="r9")))
    assert ["reference/r1"] == list(joined.runs)


def test_unchecked_reference_is_inconclusive() -> None:
    """Without a second uncached run nothing vouches for the first: no SAME and no DIVERGED."""
    verdict = judge(trace(run("reference"), cold(), hit()))

    assert ("INCONCLUSIVE", 3) == (verdict.status, verdict.exit_code)
    assert "reference-2 has no run of r1" in verdict.says
