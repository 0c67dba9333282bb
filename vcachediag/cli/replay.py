"""`vcachediag replay`: options in, report out."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from vcachediag.errors import FileError, UsageError


class Format(StrEnum):
    """Forms of the report."""

    TEXT = "text"
    JSON = "json"


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
    output: Annotated[Path | None, typer.Option(
        "-o", "--output", help="Write the report to this file.")] = None,
    format: Annotated[Format, typer.Option(help="Form of the report.")] = Format.TEXT,
    brief: Annotated[bool, typer.Option("--brief", help="Verdict and next steps only.")] = False,
    all_steps: Annotated[bool, typer.Option(
        "--all-steps", help="Unfold every row of the token tables.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace existing output.")] = False,
    debug: Annotated[bool, typer.Option(  # noqa: ARG001  # read in `main`
        "--debug", help="Show tracebacks.")] = False,
) -> int:
    """Run requests with and without the prefix cache, and compare them side by side."""
    if not engine:
        raise UsageError("no model is named",
                         hint="vcachediag replay REQUESTS -- MODEL [vllm flags]")
    if output is not None:
        _check_output(output, out, force=force)
    # Imported here: `--help` must answer at once.
    from vcachediag.cli.progress import ProgressLine
    from vcachediag.pipeline import ReplayOptions, replay
    from vcachediag.report import print_report, render_json, render_text

    options = ReplayOptions(
        requests=requests, engine_arguments=tuple(engine), plugins=tuple(plugin or ()),
        repeat=repeat, max_tokens=max_tokens, out=out, force=force)
    with ProgressLine(sys.stderr) as progress:
        replayed = replay(options, progress.show)
    verdict, trace = replayed.verdict, replayed.trace
    if output is None and format is Format.TEXT:
        print_report(verdict, trace, all_steps=all_steps, brief=brief)
        return verdict.exit_code
    text = (render_json(verdict, trace) if format is Format.JSON else
            render_text(verdict, trace, all_steps=all_steps, brief=brief).plain)
    if output is None:
        sys.stdout.write(text)
    else:
        _write(output, text)
    return verdict.exit_code


def _check_output(path: Path, trace: Path | None, *, force: bool) -> None:
    """Refuse what cannot be written before minutes are spent on recording it."""
    if path.exists() and not force:
        raise FileError(f"{path} exists already", hint="name another, or add --force")
    if path.is_dir():
        raise FileError(f"cannot write {path}", cause="it is a folder")
    if not path.parent.is_dir() and path.parent != trace:
        raise FileError(f"cannot write {path}", cause=f"there is no folder {path.parent}")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot write {path}", cause=error.strerror) from error
