"""`vcachediag report`: a saved trace in, report out; neither vLLM nor torch."""

from pathlib import Path
from typing import Annotated

import typer

from vcachediag.cli.output import (
    AllStepsOption,
    BriefOption,
    DebugOption,
    ForceOption,
    Format,
    FormatOption,
    OutputOption,
    check_output,
    put_report,
    put_text,
)
from vcachediag.errors import UsageError


def command(
    traces: Annotated[list[Path] | None, typer.Argument(
        metavar="TRACE [TRACE]", help="A recorded run; two are put side by side.")] = None,
    output: OutputOption = None,
    format: FormatOption = Format.TEXT,
    brief: BriefOption = False,
    all_steps: AllStepsOption = False,
    schema: Annotated[bool, typer.Option(
        "--schema", help="Print the JSON Schema of a trace's records instead.")] = False,
    force: ForceOption = False,
    debug: DebugOption = False,  # noqa: ARG001  # see there
) -> int:
    """Report a recorded run again, or compare two of them."""
    check_output(output, None, force=force)
    # Imported here: `--help` must answer at once.
    from vcachediag.analysis.verdict import judge
    from vcachediag.trace.reader import read_trace

    if schema:
        from vcachediag.trace.schema import schema_text

        put_text(schema_text(), output)
        return 0
    if not traces or len(traces) > 2:
        raise UsageError("name one trace, or two to compare",
                         hint="vcachediag report TRACE [TRACE]")
    read = [read_trace(folder) for folder in traces]
    if len(read) == 1:
        return put_report(judge(read[0]), read[0], form=format, output=output,
                          all_steps=all_steps, brief=brief)
    from vcachediag.analysis.two_traces import compare_traces
    from vcachediag.report.two_traces import render_comparison

    put_text(render_comparison(compare_traces(*read), as_json=format is Format.JSON), output)
    return 0
