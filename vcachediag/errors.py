"""Everything that can go wrong, and the exit code of each.

    VcachediagError
    ├── UsageError            2   the command line does not make sense
    ├── InconclusiveError     3   nothing can be judged: caching is off, nothing to exercise
    ├── VllmMissingError      4   vLLM is not installed, or lacks what we need
    ├── LoadError             5   the plugin or the model did not load
    ├── EngineFailedError     6   the engine failed while recording; the trace is kept
    ├── FileError             7   a file is unreadable, or the output exists
    │   └── RequestFileError      ... names file, line and field
    └── InterruptedRunError 130   Ctrl-C; what was recorded is kept

They are caught in one place, `vcachediag.cli.app.main`, and shown as one line, the cause
and a hint. Verdicts are not errors: their codes are in `ExitCode` as well.
"""

from enum import IntEnum
from pathlib import Path


class ExitCode(IntEnum):
    """What the process tells its caller; one number per kind of outcome."""

    OK = 0
    FINDING = 1
    USAGE = 2
    INCONCLUSIVE = 3
    VLLM_MISSING = 4
    LOAD_FAILED = 5
    ENGINE_FAILED = 6
    FILE = 7
    INTERNAL = 70
    INTERRUPTED = 130


class VcachediagError(Exception):
    """An expected failure: one line, what caused it, and what to do about it."""

    exit_code = ExitCode.INTERNAL

    def __init__(self, message: str, *, cause: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.cause = cause
        self.hint = hint
        #: Where it was raised, if that was in another process; shown with `--debug`.
        self.traceback_text = ""
        #: The trace folder that was kept, if one was.
        self.kept = ""


class UsageError(VcachediagError):
    """The command line does not make sense."""

    exit_code = ExitCode.USAGE


class InconclusiveError(VcachediagError):
    """There is nothing to judge: prefix caching is off for this model or platform."""

    exit_code = ExitCode.INCONCLUSIVE


class VllmMissingError(VcachediagError):
    """vLLM is not installed, or this version lacks something that we need."""

    exit_code = ExitCode.VLLM_MISSING


class LoadError(VcachediagError):
    """The plugin or the model did not load."""

    exit_code = ExitCode.LOAD_FAILED


class EngineFailedError(VcachediagError):
    """The engine failed while recording; what was recorded is kept.

    `log` holds the last lines that vLLM printed.
    """

    exit_code = ExitCode.ENGINE_FAILED

    def __init__(self, message: str, *, cause: str | None = None, hint: str | None = None,
                 log: tuple[str, ...] = ()) -> None:
        super().__init__(message, cause=cause, hint=hint)
        self.log = log


class FileError(VcachediagError):
    """A file cannot be read or written."""

    exit_code = ExitCode.FILE


class RequestFileError(FileError):
    """A request file is wrong; the message starts with `file:line`."""

    def __init__(self, path: Path, line: int | None, message: str, *, cause: str | None = None,
                 hint: str | None = None) -> None:
        where = str(path) if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {message}", cause=cause, hint=hint)


class InterruptedRunError(VcachediagError):
    """Ctrl-C while recording; what was recorded is kept."""

    exit_code = ExitCode.INTERRUPTED
