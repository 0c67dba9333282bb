"""`vcachediag replay`: options in, report out."""

import sys
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
)
from vcachediag.errors import UsageError


def command(
    requests: Annotated[Path, typer.Argument(
        metavar="REQUESTS", help="Request file: JSONL or a JSON array.")],
    engine: Annotated[list[str] | None, typer.Argument(
        metavar="-- MODEL [VLLM FLAGS]", help="The model and flags, exactly as for `vllm serve`.",
    )] = None,
    plugin: Annotated[list[str] | None, typer.Option(
        help="Your vLLM plugin: entry point, module:function, .py file or folder. Repeatable.",
    )] = None,
    repeat: Annotated[int, typer.Option(
        min=1, help="How often the cached lane sends the sequence.")] = 2,
    max_tokens: Annotated[int, typer.Option(
        min=1, help="Limit of output tokens where a request gives none.")] = 256,
    out: Annotated[Path | None, typer.Option(help="Keep the recorded run in this folder.")] = None,
    redact: Annotated[bool, typer.Option(
        "--redact", help="Leave prompts, answers and images out of what is kept.")] = False,
    output: OutputOption = None,
    format: FormatOption = Format.TEXT,
    brief: BriefOption = False,
    all_steps: AllStepsOption = False,
    force: ForceOption = False,
    debug: DebugOption = False,  # noqa: ARG001  # see there
) -> int:
    """Run requests with and without the prefix cache, and compare them side by side."""
    if not engine:
        raise UsageError("no model is named",
                         hint="vcachediag replay REQUESTS -- MODEL [vllm flags]")
    check_output(output, out, force=force)
    # Imported here: `--help` must answer at once.
    from vcachediag.cli.progress import ProgressLine
    from vcachediag.pipeline import ReplayOptions, replay

    options = ReplayOptions(
        requests=requests, engine_arguments=tuple(engine), plugins=tuple(plugin or ()),
        repeat=repeat, max_tokens=max_tokens, out=out, force=force,
        redact=redact)
    with ProgressLine(sys.stderr) as progress:
        replayed = replay(options, progress.show)
    return put_report(replayed.verdict, replayed.trace, form=format, output=output,
                      all_steps=all_steps, brief=brief)
