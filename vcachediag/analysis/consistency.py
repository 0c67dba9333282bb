"""Whether the model was given what the scheduler had decided. Notes, not findings."""

from collections import defaultdict

from vcachediag.analysis.align import Joined, Run
from vcachediag.trace.records import BlockTableRecord, ForwardRecord, StepRecord, Trace


def disagreements(trace: Trace, joined: Joined) -> tuple[str, ...]:
    """What does not fit, in words; the first case of each kind."""
    found = []
    # A model may count otherwise; then its uncached runs do as well.
    usual = all(_first_wrong(run) is None for run in joined.of_lane("reference"))
    for run in joined.runs.values():
        wrong = _first_wrong(run) if usual else None
        if wrong is not None:
            due = next(step for step in run.steps if step.step == wrong.step).num_computed_tokens
            found.append(f"{run.name}: in step {wrong.step} the engine gave position "
                         f"{wrong.first_position[0]} to the token at place {due}.")
            break
    other = _other_blocks(trace)
    return (*found, *((other,) if other else ()))


def positions_after_hit(run: Run) -> tuple[int, int, bool] | None:
    """(first, last, as they should be) of the positions that the engine gave after a hit.

    None: no hit, not seen, or positions of several axes, which say something else.
    """
    if not run.steps or not run.cached_tokens:
        return None
    first = next((f for f in run.forwards if f.step == run.steps[0].step), None)
    if first is None or len(first.first_position) != 1:
        return None
    start = run.steps[0].num_computed_tokens
    right = (start, start + run.steps[0].num_scheduled_tokens - 1)
    given = (first.first_position[0], first.last_position[0])
    return (*given, given == right)


def _first_wrong(run: Run) -> ForwardRecord | None:
    steps = {step.step: step for step in run.steps}
    return next((f for f in run.forwards if _wrong_positions(f, steps.get(f.step))), None)


def _wrong_positions(forward: ForwardRecord, step: StepRecord | None) -> bool:
    """M-RoPE counts on three axes, and images there by other rules: not compared."""
    return (step is not None and len(forward.first_position) == 1
            and forward.first_position[0] != step.num_computed_tokens)


def _other_blocks(trace: Trace) -> str:
    """Where attention used another block table than the scheduler made.

    Some backends count blocks of another size. Then nothing fits anywhere, which proves nothing:
    only a table that fits in some steps and not in others is told.
    """
    tables: dict[tuple[str, int], list[int]] = defaultdict(list)
    groups: dict[str, set[int]] = defaultdict(set)
    fits, first = False, ""
    for event in trace.events:
        if isinstance(event, BlockTableRecord):
            table = tables[event.run, event.group]
            if event.first <= len(table):
                table[event.first:] = event.block_ids
                groups[event.run].add(event.group)
        elif isinstance(event, ForwardRecord) and event.block_ids and groups[event.run]:
            end = event.first_block + len(event.block_ids)
            # Which KV group the layer belongs to is not told.
            same = any(tables[event.run, group][event.first_block:end] == list(event.block_ids)
                       for group in groups[event.run])
            fits = fits or same
            if not same and not first:
                first = (f"{event.run}: in step {event.step} attention used other blocks than the "
                         "scheduler's block table has.")
    return first if fits else ""
