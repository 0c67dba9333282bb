"""How a text report folds, marks, drops and tells apart."""

from typing import Any

import msgspec
import pytest
from rich.cells import cell_len

from vcachediag.analysis.records import Coverage, Verdict
from vcachediag.report import render_text
from vcachediag.trace.records import NotObservedRecord, StopLogit

from .builders import comparison, engine, healthy_runs, pair, row, run, stop_row, trace, verdict
from .scenarios import SHOWN, diverged, hostile


def lines_of(shown: Verdict, **options: object) -> list[str]:
    """The report of `shown` over a plain trace, as lines."""
    text = render_text(shown, trace(), **{"width": 80, **options})  # type: ignore[arg-type]
    return text.plain.splitlines()


def compared(**fields: Any) -> Verdict:
    """A verdict that shows one comparison."""
    return verdict(runs=healthy_runs(comparison=comparison(**fields)), shown=SHOWN)


def test_all_steps_folds_nothing() -> None:
    """`--all-steps` shows each of 256 steps, and neither folds nor names the flag."""
    lines = lines_of(diverged(), all_steps=True)
    first = next(place for place, line in enumerate(lines) if line.startswith("Tokens")) + 2

    shown = [line.lstrip("!>|").split()[0] for line in lines[first : first + 256]]

    assert [str(step) for step in range(256)] == shown
    assert not [line for line in lines if "folded" in line or "unfold" in line]


def test_narrow_terminal_leaves_out_whole_columns_and_names_them() -> None:
    """At 60 columns the margins go, every other figure stays whole, and the table says so."""
    lines = lines_of(diverged(), width=60)

    assert ">     17  1               7                        2.11" in lines
    assert "  left out at this width: margin, margin" in lines


def test_split_where_the_reference_ends() -> None:
    """A reference that ends where the other goes on is a split whose left side has finished."""
    steps = (
        pair(0, row(0, "a"), row(0, "a")),
        pair(1, stop_row(1), row(1, "b"), 2.0, beyond=True),
        pair(2, None, row(2, "c"), None),
    )
    reference, *others = compared(outcome="splits", split=2, first_beyond=1, steps=steps).runs
    shorter = msgspec.structs.replace(reference, output_tokens=2)

    lines = lines_of(verdict(runs=(shorter, *others), shown=SHOWN))

    assert ">    2  finished: stop          c                 3.00          n/c" in lines


def test_tokens_that_look_alike_are_told_apart_by_id() -> None:
    """Two tokens that differ by a leading space show their ids at the split."""
    left, right = row(0, " a", token=5), row(0, "a", token=6)
    steps = (pair(0, left, right, 1.0, beyond=True),)

    lines = lines_of(compared(outcome="splits", split=0, first_beyond=0, steps=steps))

    assert ">    0   a #5             3.00  a #6              3.00         1.00" in lines


def test_finding_is_named_even_if_the_headline_does_not() -> None:
    """The verdict line carries code, name and confidence; the headline follows."""
    headline = "r1#2 splits at token 17"

    lines = lines_of(diverged(headline=headline))

    assert ["DIVERGED  VCD101 positions-wrong-on-resume  (confirmed)", headline] == lines[:2]


def test_infinite_difference() -> None:
    """A logit that is minus infinity on one side is a difference of `inf`, not a number."""
    steps = (pair(0, row(0, "a"), row(0, "a", stop_logit=None), float("inf"), beyond=True),)

    lines = lines_of(compared(outcome="differs", first_beyond=0, steps=steps))

    assert "!    0  a                 3.00  a                 3.00          inf" in lines
    assert "   0            30  -4.000           30   -inf  nearest: both, last step: both" in lines


def test_stop_tokens_beyond_two_are_folded() -> None:
    """With many stop tokens the two nearest to being chosen are shown, the others counted."""
    stops = tuple(StopLogit(token_id=token, logit=1.0, rank=60 - token) for token in range(5))
    many = msgspec.structs.replace(row(0, "a"), stops=stops)

    lines = lines_of(compared(steps=(pair(0, many, many),)))

    expected = [
        "Stop token id 4: rank of 67, and logit",
        "Stop token id 3: rank of 67, and logit",
    ]
    assert expected == [line for line in lines if line.startswith("Stop token")]
    assert "3 more stop tokens folded   unfold: --all-steps" in lines


def test_comparison_without_rows() -> None:
    """A comparison without rows says so instead of showing an empty table."""
    lines = lines_of(compared(outcome="unknown", why="no logits"))

    assert "Tokens   reference r1 | cached r1#2: n/o, no row of logits was recorded" in lines


def test_reference_missing_from_the_verdict() -> None:
    """Without the reference's own summary its end is unknown, and the table still stands."""
    lines = lines_of(diverged(runs=diverged().runs[3:]))

    assert ">     17  1                  1.38  7                    0.22         2.11" in lines
    assert "| 23-255  n/o                      7 x233                             n/c" in lines


def test_many_runs_are_folded_to_those_that_differ() -> None:
    """Forty healthy runs fold into one counted line; the run that differs stays."""
    healthy = [
        run("cached", f"q{number}", comparison=comparison(f"cached/q{number}#1"))
        for number in range(40)
    ]
    odd = run("cached", "odd", comparison=comparison("cached/odd#1", "splits", split=3))
    many = verdict(runs=(*healthy, odd))

    folded, unfolded = lines_of(many), lines_of(many, all_steps=True)

    expected = [
        "lane          cache  computed  output  finish  against reference",
        "cached odd#1  cold      98/98       4  stop    SPLITS at token 3",
        "40 more runs folded, none differs   unfold: --all-steps",
    ]
    assert expected == folded[4:7]
    assert "cached q39#1  cold      98/98       4  stop    same" in unfolded


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"hits": 3, "tails": (2, 34), "cuts_in_images": 2, "chunked_prefills": 1},
            "tails of 2 and 34 tokens; cuts: 0 in text, 2 in images; "
            "1 prefill cut by the token budget",
        ),
        (
            {"hits": 8, "tails": tuple(range(1, 9)), "cuts_in_text": 8},
            "tails of 1 to 8 tokens (8 lengths); cuts: 8 in text, 0 in images",
        ),
    ],
)
def test_coverage_words(fields: dict[str, object], expected: str) -> None:
    """Tails are listed or given as a range, cuts and chunks counted."""
    covered = Coverage(runs=9, **fields)  # type: ignore[arg-type]

    lines = lines_of(verdict(coverage=covered), width=200)

    assert f"Coverage   9 runs, {covered.hits} with a hit; {expected}" in lines


@pytest.mark.parametrize(
    ("prefill", "expected"),
    [((98,), "98/98"), ((96, 2), "96+2"), ((32, 32, 32, 2), "98 in 4"), ((), "n/o")],
)
def test_prefill_steps(prefill: tuple[int, ...], expected: str) -> None:
    """Computed tokens: of the prompt, cut by cut, or in how many steps."""
    lines = lines_of(verdict(runs=(run("reference", prefill=prefill),)))

    row = next(line for line in lines if line.startswith("reference r1"))
    assert f"reference r1  not read  {expected.rjust(8)}       4  stop    the truth" == row


def test_recorder_blind_spots_are_shown() -> None:
    """What the recording could not see is shown next to what the analysis could not see."""
    blind = NotObservedRecord(what="logits", why="no hook fired", run="cached/r1#2")

    text = render_text(verdict(), trace(events=(engine(), blind)), width=80).plain

    assert "Not observed\n- logits in cached r1#2: no hook fired\n" in text


def test_damage_that_a_note_tells_is_not_told_twice() -> None:
    """Damage that the analysis has put into its notes is left to them."""
    noted = verdict(notes=("one row is lost: worker-7: torn last line",))

    text = render_text(noted, trace(damage=("worker-7: torn last line",)), width=80).plain

    assert "Notes\n- one row is lost: worker-7: torn last line\n\n" in text


def test_run_that_never_started_is_not_cold() -> None:
    """A run that computed nothing has no known cache state."""
    lines = lines_of(verdict(runs=(run("cached", prefill=(), output_tokens=0, error="gone"),)))

    assert "cached r1#1  n/o         n/o       0  stop    FAILED" in lines


def test_flags_without_effect_are_listed() -> None:
    """Serve-only flags are named once, after the overrides."""
    events = (engine(unused_flags=("--port 8000", "--api-key")),)

    text = render_text(verdict(), trace(events=events), width=80).plain

    assert "Not used here  --port 8000, --api-key\n" in text


def test_styles_carry_no_meaning_alone() -> None:
    """The split is red, and its line starts with the marker."""
    report = render_text(diverged(), trace(), width=80)

    red = [report.plain[span.start : span.end] for span in report.spans if span.style == "red"]

    assert "> " in red


def test_hostile_text_keeps_every_column() -> None:
    """In the token table the last column ends at the same cell in every row."""
    lines = lines_of(hostile(), all_steps=True)
    first = next(place for place, line in enumerate(lines) if line.startswith("Tokens")) + 1

    assert {cell_len(lines[first])} == {cell_len(line) for line in lines[first : first + 12]}
