"""The situations whose whole report is compared with `expected/NAME-WIDTH.txt`."""

from typing import Any

import msgspec

from vcachediag.analysis.records import (
    Coverage,
    Evidence,
    Floor,
    NotObserved,
    RunSummary,
    StepPair,
    Verdict,
)
from vcachediag.trace.records import Footer, LogitsRecord, Trace

from .builders import (
    comparison,
    finding,
    healthy_runs,
    pair,
    row,
    run,
    stop_row,
    trace,
    verdict,
)

SHOWN = "cached/r1#2"


def never_stopping() -> tuple[StepPair, ...]:
    """Equal tokens to 16, a split at 17, the reference stops at 22, the hit runs to 255."""
    pairs = []
    for index in range(256):
        left: LogitsRecord | None
        if index == 17:
            left = row(17, "1", margin=1.38, rank=12, stop_logit=1.5, top=_top("1", "7", 1.38))
        elif index < 22:
            left = row(index, chr(97 + index), margin=2.91 + index / 10)
        else:
            left = stop_row(22) if index == 22 else None
        pairs.append(_never_stopping_pair(index, left))
    return tuple(pairs)


def _never_stopping_pair(index: int, left: LogitsRecord | None) -> StepPair:
    name = "cached/r1#2"
    if index < 17:
        right = row(index, chr(97 + index), run=name, margin=1.87 + index / 10, rank=33)
        return pair(index, left, right, 1.0 + index / 20, beyond=True)
    if index == 17:
        right = row(17, "7", run=name, margin=0.22, rank=14, stop_logit=None,
                    top=_top("7", "1", 0.22))
        return pair(17, left, right, 2.11, beyond=True)
    return pair(index, left, row(index, "7", run=name, margin=2.87, rank=19), None)


def _top(first: str, second: str, margin: float) -> tuple[tuple[int, str, float], ...]:
    others = ((51, "3", 4.25), (52, "4", 3.5), (53, "5", 3.0), (54, "6", 2.5))
    return ((ord(first), first, 8.0), (ord(second), second, 8.0 - margin), *others)


def diverged(**fields: Any) -> Verdict:
    """The never-stopping run, as it is reported."""
    steps = never_stopping()
    compared = comparison(
        outcome="splits", split=17, first_beyond=0, worst=0.23, worst_absolute=2.11, steps=steps
    )
    *others, never_ending = healthy_runs(
        output_tokens=256, finish="length", comparison=compared
    )
    return verdict(
        **{
            "status": "DIVERGED",
            "exit_code": 1,
            "headline": "VCD101 positions-wrong-on-resume  (confirmed)",
            "says": "Request r1#2 (cache hit) splits from its uncached run at output token 17 "
            "and never emits </s>: on a partial prefill the model counts positions from 0.",
            "findings": (finding(),),
            "ruled_out": (("noise", "E1"), ("our hooks", "a run without them gave the same")),
            "not_observed": (NotObserved(what="chunked prefill", why="nothing was cut"),),
            "notes": ("The prompt fits into one step of the user's token budget.",),
            "runs": (
                *(msgspec.structs.replace(each, output_tokens=23) for each in others),
                never_ending,
            ),
            "next_steps": (
                "Pass `positions` on as given; on a partial prefill they do not start at 0.",
                "Check the fix: run this again; exit 0 means fixed.",
            ),
            "minimal_pair": ("r1", "r1"),
            "shown": "cached/r1#2",
            **fields,
        }
    )


def equal_text() -> Verdict:
    """Every token equal, one row far beyond the floor; cause open, two findings."""
    steps = [
        pair(index, row(index, name), row(index, name, margin=2.5), 1.5, beyond=index == 1)
        for index, name in enumerate(("a", "b", "c"))
    ]
    steps.append(pair(3, stop_row(3), stop_row(3), 2e-6))
    compared = comparison(outcome="differs", first_beyond=1, steps=tuple(steps))
    overwritten = Evidence(number=3, text="Block 2 holds other bytes than when it was written.")
    return verdict(
        status="DIVERGED",
        exit_code=1,
        headline="rows of logits differ beyond the floor; the text is equal",
        says="Request r1#2 gives the same text, but not the same logits.",
        findings=(
            finding(code=None, name="wrong-after-hit", confidence="possible"),
            finding(
                code="303", name="block-overwritten", says="block 2 changed",
                evidence=(overwritten,),
            ),
        ),
        runs=healthy_runs(comparison=compared),
        shown=SHOWN,
        minimal_pair=("r1", "r1"),
    )


def single_token_tail() -> Verdict:
    """SAME, but every hit left one token to compute."""
    return verdict(
        coverage=Coverage(runs=2, hits=1, tails=(1,), cuts_in_text=1),
        runs=healthy_runs(cached_tokens=97, prefill=(1,)),
    )


def benign() -> Verdict:
    """One token flips within the floor; shown with the rows around it."""
    steps = (
        *(pair(index, row(index, text), row(index, text), 1e-6)
          for index, text in enumerate("abcd")),
        pair(4, row(4, "l", margin=0.004), row(4, "1", margin=0.0021), 0.006),
        pair(5, stop_row(5), stop_row(5), None),
    )
    return verdict(
        status="BENIGN",
        headline="VCD901 numeric-noise: r1#2 flips at token 4, margin 0.004 within the floor",
        says="Two tokens were nearly equal; rounding decides between them.",
        floor=Floor(unit=0.0078, repeat=0.0, decode=0.011, bound=0.044),
        runs=healthy_runs(
            output_tokens=6,
            comparison=comparison(outcome="benign", split=4, worst=7e-4, steps=steps),
        ),
        shown=SHOWN,
    )


def unstable() -> Verdict:
    """The reference does not repeat itself."""
    unknown = comparison("cached/r1#1", "unknown", why="the reference is unstable")
    return verdict(
        status="INCONCLUSIVE",
        exit_code=3,
        headline="VCD902 baseline-unstable",
        says="reference and reference-2 split at token 9 with no cache, so the cache cannot be "
        "judged.",
        floor=Floor(unit=2.4e-7, repeat=0.31, decode=None, bound=1.5e-5),
        runs=(
            run("reference"),
            run("reference-2", comparison=comparison("reference-2/r1", "splits", split=9)),
            run("cached", comparison=unknown),
        ),
        next_steps=("Use temperature 0, a fixed seed, one request at a time.",),
    )


def nothing_exercised() -> Verdict:
    """No run had a hit."""
    return verdict(
        status="INCONCLUSIVE",
        exit_code=3,
        headline="no run had a hit, so nothing was put to the test",
        says="The prompt is shorter than one block.",
        coverage=Coverage(runs=2, hits=0),
        runs=(run("reference"), run("cached", comparison=comparison("cached/r1#1"))),
    )


def failed() -> Verdict:
    """The run with the hit raised."""
    error = "ValueError: Attempted to assign 64 multimodal tokens to 2 placeholders in the prompt"
    broken = comparison(outcome="unknown", why="the run failed")
    return verdict(
        status="INCONCLUSIVE",
        exit_code=6,
        headline="the engine failed in cached r1#2",
        says="The run with the hit raised an exception.",
        runs=healthy_runs(
            output_tokens=0, finish="error", prefill=(), error=error, comparison=broken
        ),
        shown=SHOWN,
    )


def lost_rows() -> Verdict:
    """The trace lost rows of the reference that the engine had given."""
    steps = (
        pair(0, row(0, "a"), row(0, "a")),
        pair(1, None, row(1, "b"), None),
        pair(2, None, row(2, "c"), None),
        pair(3, row(3, "d"), row(3, "d")),
    )
    compared = comparison(outcome="unknown", why="rows of the reference are missing", steps=steps)
    return verdict(runs=healthy_runs(comparison=compared), shown=SHOWN)


def torn_trace() -> Trace:
    """No engine record, no footer, two damaged parts."""
    damage = ("events/worker-7.jsonl:41: torn last line", "requests.jsonl: missing")
    return trace(requests=(), events=(), footer=None, damage=damage)


def without_runs() -> Verdict:
    """The engine did not start."""
    return verdict(
        status="INCONCLUSIVE",
        exit_code=6,
        headline="the engine did not start",
        says="",
        coverage=Coverage(runs=0, hits=0),
        runs=(),
        shown=SHOWN,
    )


def failed_trace() -> Trace:
    """A recording that ended before any lane."""
    footer = Footer(outcome="failed", ended="2025-01-01T00:00:09Z", detail="out of memory")
    return trace(requests=(), events=(), footer=footer)


#: Rich markup, a hyperlink escape, right-to-left text under an override, emoji, wide letters,
#: a newline, a lone combining mark, spaces, no text, a long word.
HOSTILE_TOKENS = (
    "[red]", "\x1b]8;;http://x\x07", "\u202eשלם", "👩\u200d🔬", "漢字漢字漢字漢字漢字漢字",
    "\n\t", "\u0301", "  ", "", "x" * 90,
)
_HOSTILE_RUN = "cached/[b]\x1b[31m漢字漢字漢字漢字漢字#12"


def hostile() -> Verdict:
    """Every text that comes from outside tries to act on the terminal."""
    steps = []
    for index, text in enumerate(HOSTILE_TOKENS):
        side = row(index, text, token=100 + index)
        steps.append(pair(index, side, side, 2.0, beyond=True))
    last = row(10, HOSTILE_TOKENS[2], token=1), row(10, HOSTILE_TOKENS[4], token=3)
    steps.append(pair(10, *last, 2.5, beyond=True))
    compared = comparison(
        _HOSTILE_RUN, outcome="splits", split=10, first_beyond=0, steps=tuple(steps)
    )
    return verdict(
        status="DIVERGED",
        exit_code=1,
        headline="[bold]\x1b[2J",
        says="gave \u202eabc\nand [/red] instead of 漢字",
        findings=(finding(code=None, name="[link]\x07", evidence=()),),
        notes=("note \x9b31m",),
        runs=_hostile_runs(compared),
        shown=_HOSTILE_RUN,
        minimal_pair=("[b]\r", "👩\u200d🔬"),
        next_steps=("see \x1b]0;title\x07",),
    )


def _hostile_runs(compared: Any) -> tuple[RunSummary, ...]:
    return (
        run("reference", output_tokens=11),
        run("cached", run=_HOSTILE_RUN, output_tokens=11, finish="length", comparison=compared),
    )


SCENARIOS: dict[str, tuple[Verdict, Trace, dict[str, bool]]] = {
    "never-stops": (diverged(), trace(), {}),
    "never-stops-brief": (diverged(), trace(), {"brief": True}),
    "equal-text": (equal_text(), trace(), {}),
    "same": (verdict(), trace(), {}),
    "single-token-tail": (single_token_tail(), trace(), {}),
    "benign": (benign(), trace(), {}),
    "unstable": (unstable(), trace(), {}),
    "nothing-exercised": (nothing_exercised(), trace(), {}),
    "failed-run": (failed(), trace(), {}),
    "torn-trace": (lost_rows(), torn_trace(), {}),
    "without-runs": (without_runs(), failed_trace(), {}),
    "hostile": (hostile(), trace(), {"all_steps": True}),
}
