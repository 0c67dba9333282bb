"""The command line: parses, calls, and turns every outcome into text and an exit code."""

import sys
import traceback
from typing import Annotated, NoReturn

import typer

from vcachediag import __version__
from vcachediag.cli import replay, report
from vcachediag.errors import ExitCode, VcachediagError

app = typer.Typer(
    name="vcachediag", no_args_is_help=True, add_completion=False, rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Find out why vLLM's prefix caching changes a model's answer, and who is at fault.")
app.command("replay")(replay.command)
app.command("report")(report.command)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"vcachediag {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option(
        "--version", callback=_show_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Find out why vLLM's prefix caching changes a model's answer, and who is at fault."""


def main() -> NoReturn:
    """Run the command line and exit with a code of `ExitCode`."""
    debug = "--debug" in sys.argv
    try:
        # Without click's own handling, a command's return value is its exit code.
        code = app(standalone_mode=False)
    except VcachediagError as error:
        _tell(error, debug=debug)
        code = error.exit_code
    except Exception as error:  # noqa: BLE001  # the last resort: our own faults have a code too
        code = _foreign(error, debug=debug)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = ExitCode.INTERRUPTED
    _flush()
    sys.exit(int(code or 0))


def _foreign(error: Exception, *, debug: bool) -> int:
    # typer brings a click of its own, whose classes have no public place.
    names = {kind.__name__ for kind in type(error).__mro__}
    if "ClickException" in names:
        context = getattr(error, "ctx", None)
        return _tell_usage(error.format_message(),  # type: ignore[attr-defined]  # see above
                           f"vcachediag {context.info_name}" if context else "vcachediag")
    if names & {"Exit", "Abort"}:
        return int(getattr(error, "exit_code", ExitCode.INTERRUPTED))
    if isinstance(error, BrokenPipeError):
        return int(ExitCode.OK)
    print(f"error: a fault in vcachediag itself: {type(error).__name__}: {error}\n"
          "hint: run again with --debug and report the traceback", file=sys.stderr)
    if debug:
        traceback.print_exc()
    return int(ExitCode.INTERNAL)


def _tell_usage(message: str, command: str) -> int:
    print(f"error: {message}\nhint: {command} --help", file=sys.stderr)
    return int(ExitCode.USAGE)


def _tell(error: VcachediagError, *, debug: bool) -> None:
    """One line, cause, hint; the end of vLLM's log if the engine failed."""
    lines = [f"error: {error.message}"]
    if error.cause:
        lines.append(f"  caused by: {error.cause}")
    log = getattr(error, "log", ())
    if log:
        lines += ["  the end of vLLM's log:", *(f"    {line}" for line in log)]
    if error.hint:
        lines.append(f"hint: {error.hint}")
    if error.kept:
        lines.append(f"what was recorded is kept in {error.kept}")
    print("\n".join(_plain(line) for line in lines), file=sys.stderr)
    if debug:
        print(error.traceback_text or traceback.format_exc(), file=sys.stderr)


def _plain(line: str) -> str:
    """No control characters: file names and logs may hold terminal escapes."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has gone; Python would complain once more at exit.
        sys.stdout = None
