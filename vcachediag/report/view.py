"""What every section of the report reads: the verdict, its trace, and look-ups in both."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from vcachediag.analysis.records import Finding, RunComparison, RunSummary, Verdict
from vcachediag.report.escape import escape, run_label
from vcachediag.trace.records import (
    EngineRecord,
    FinishedRecord,
    LaneRecord,
    NotObservedRecord,
    Record,
    Trace,
)

UNFOLD = "unfold: --all-steps"

AnyRecord = TypeVar("AnyRecord", bound=Record)


@dataclass(frozen=True, kw_only=True)
class View:
    """A verdict and its trace, and how they are to be shown."""

    verdict: Verdict
    trace: Trace
    width: int = 80
    all_steps: bool = False

    def records(self, kind: type[AnyRecord]) -> list[AnyRecord]:
        """The trace's records of one kind, in order."""
        return [event for event in self.trace.events if isinstance(event, kind)]

    @cached_property
    def engine(self) -> EngineRecord | None:
        """The engine that ran the lanes; None when it never came up or the trace is torn."""
        return next(iter(self.records(EngineRecord)), None)

    @cached_property
    def lanes(self) -> dict[str, LaneRecord]:
        """Lanes by name."""
        return {record.lane: record for record in self.records(LaneRecord)}

    @cached_property
    def finished(self) -> dict[str, FinishedRecord]:
        """How each run ended, by run."""
        return {record.run: record for record in self.records(FinishedRecord)}

    def summary(self, run: str) -> RunSummary | None:
        """The summary of a run, if there is one."""
        return self._summaries.get(run)

    @cached_property
    def _summaries(self) -> dict[str, RunSummary]:
        return {summary.run: summary for summary in self.verdict.runs}

    @cached_property
    def shown(self) -> RunComparison | None:
        """The comparison that the token tables show."""
        if self.verdict.shown is None:
            return None
        summary = self.summary(self.verdict.shown)
        return None if summary is None else summary.comparison

    @cached_property
    def not_observed(self) -> list[tuple[str, str]]:
        """What could not be seen, and why: of the analysis, then of the recording."""
        judged = [(each.what, each.why) for each in self.verdict.not_observed]
        found = list(judged)
        said: dict[str, list[str]] = {}
        for what, why in judged:
            said.setdefault(why, []).append(what)
        for record in self.records(NotObservedRecord):
            where = record.run or record.lane
            if not any(what.startswith(record.what) for what in said.get(record.why, ())):
                what = f"{record.what} in {run_label(where)}" if where else record.what
                found.append((what, record.why))
        return found

    @cached_property
    def notes(self) -> list[str]:
        """Notes of the analysis and of the recording, damage, and how the recording ended."""
        notes = [*self.verdict.notes, *self.trace.header.notes]
        notes += [f"trace damaged: {words}" for words in self.trace.damage
                  if not any(words in note for note in notes)]
        if self.trace.header.redacted:
            notes.append("redacted: `~` and four digits stand for a token, the same only at the "
                         "same place of the same request; exceptions are named without their "
                         "messages, `expect` was not compared, and there is no engine log")
        footer = self.trace.footer
        if footer is None:
            notes.append("the recording was not closed: it was killed, or is still being written")
        elif footer.outcome != "complete":
            detail = f": {footer.detail}" if footer.detail else ""
            notes.append(f"the recording ended {footer.outcome}{detail}")
        return list(dict.fromkeys(notes))


def finding_label(finding: Finding) -> str:
    """`VCD101 positions-wrong-on-resume  (confirmed)`; no code while the cause is open."""
    code = finding.code
    shown = "" if code is None else f"VCD{code} " if code.isdecimal() else f"{escape(code)} "
    return f"{shown}{escape(finding.name)}  ({finding.confidence})"
