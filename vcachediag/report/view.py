"""What every section of the report reads: the verdict, its trace, and look-ups in both."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from vcachediag.analysis.records import Finding, RunComparison, RunSummary, Verdict
from vcachediag.report.escape import escape
from vcachediag.trace.records import EngineRecord, FinishedRecord, LaneRecord, Record, Trace

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


def finding_label(finding: Finding) -> str:
    """`VCD101 positions-wrong-on-resume  (confirmed)`; no code while the cause is open."""
    code = finding.code
    shown = "" if code is None else f"VCD{code} " if code.isdecimal() else f"{escape(code)} "
    return f"{shown}{escape(finding.name)}  ({finding.confidence})"
