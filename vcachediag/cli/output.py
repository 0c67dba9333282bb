"""Where a report goes and in which form; shared by the commands that print one."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vcachediag.errors import FileError

if TYPE_CHECKING:
    from vcachediag.analysis.records import Verdict
    from vcachediag.trace.records import Trace


class Format(StrEnum):
    """Forms of the report."""

    TEXT = "text"
    JSON = "json"


# Options of every command that prints a report.
OutputOption = Annotated[Path | None, typer.Option(
    "-o", "--output", help="Write the report to this file.")]
FormatOption = Annotated[Format, typer.Option(help="Form of the report.")]
BriefOption = Annotated[bool, typer.Option("--brief", help="Verdict and next steps only.")]
AllStepsOption = Annotated[bool, typer.Option(
    "--all-steps", help="Unfold every row of the tables.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace existing output.")]
#: Read in `app.main`, where errors are told.
DebugOption = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]


def check_output(path: Path | None, trace: Path | None, *, force: bool) -> None:
    """Refuse what cannot be written before minutes are spent on what is to be written.

    Args:
        path: Where the report is to go; None: standard output.
        trace: A folder that will be made on the way.
        force: An existing file may be replaced.

    Raises:
        FileError: the file exists, or cannot be there.
    """
    if path is None:
        return
    if path.exists() and not force:
        raise FileError(f"{path} exists already", hint="name another, or add --force")
    if path.is_dir():
        raise FileError(f"cannot write {path}", cause="it is a folder")
    if not path.parent.is_dir() and path.parent != trace:
        raise FileError(f"cannot write {path}", cause=f"there is no folder {path.parent}")


def put_report(verdict: "Verdict", trace: "Trace", *, form: Format, output: Path | None,
               all_steps: bool, brief: bool) -> int:
    """Print or write the report; returns the verdict's exit code."""
    # Imported here: `--help` must answer at once.
    from vcachediag.report import print_report, render_json, render_text

    if output is None and form is Format.TEXT:
        print_report(verdict, trace, all_steps=all_steps, brief=brief)
        return verdict.exit_code
    put_text(render_json(verdict, trace) if form is Format.JSON else
             render_text(verdict, trace, all_steps=all_steps, brief=brief).plain, output)
    return verdict.exit_code


def put_text(text: str, output: Path | None) -> None:
    """Print `text`, or write it to a file.

    Raises:
        FileError: the file cannot be written.
    """
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot write {output}", cause=error.strerror) from error
