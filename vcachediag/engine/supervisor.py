"""Starts the engine process, speaks with it, and survives its death.

vLLM lives in a process of its own: its log cannot mix with the report, a crash or a hang
costs only that process, and a fresh engine is one restart away. No vLLM is imported here.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec

from vcachediag.engine.jobs import (
    Command,
    Failed,
    Job,
    LaneDone,
    LaneSpec,
    Progress,
    Ready,
    Reply,
    RunLane,
    Stage,
    Stop,
)
from vcachediag.errors import (
    EngineFailedError,
    ExitCode,
    FileError,
    InconclusiveError,
    LoadError,
    UsageError,
    VcachediagError,
    VllmMissingError,
)
from vcachediag.trace.writer import ENGINE_LOG

LOG_LINES_SHOWN = 12
LOG_LINE_SHOWN = 240
SECONDS_TO_STOP = 20.0
#: vLLM's log may quote prompts, so that a redacted recording has none.
NO_LOG = "run again without --redact: a redacted recording keeps no log of vLLM"
_ERRORS: dict[int, type[VcachediagError]] = {
    ExitCode.USAGE: UsageError,
    ExitCode.INCONCLUSIVE: InconclusiveError,
    ExitCode.VLLM_MISSING: VllmMissingError,
    ExitCode.LOAD_FAILED: LoadError,
    ExitCode.FILE: FileError,
}
#: Called with what the engine process does and how much of it is done, 0 to 1 or None.
OnProgress = Callable[[str, float | None], None]


class EngineProcess:
    """One engine process and the two pipes to it."""

    def __init__(self, job: Job, on_progress: OnProgress) -> None:
        self._redact = job.redact
        # Never written rather than removed in the end: we may be killed before that.
        self._log = Path(os.devnull) if job.redact else Path(job.trace) / ENGINE_LOG
        self._on_progress = on_progress
        self._decoder = msgspec.json.Decoder(Reply)
        replies, child_end = os.pipe()
        with self._log.open("ab") as log:
            # A session of its own: Ctrl-C reaches us alone, and we end the whole group.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "vcachediag.engine.worker", str(child_end)],
                stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=(child_end,),
                start_new_session=True)
        os.close(child_end)
        self._replies: IO[bytes] = os.fdopen(replies, "rb")
        self._send(msgspec.json.encode(job))

    def start(self) -> None:
        """Wait until the engine runs.

        Raises:
            VcachediagError: whichever kind the engine process names; see `errors`.
        """
        self._wait_for(Ready)

    def run_lane(self, spec: LaneSpec) -> None:
        """Run a lane to its end; its records are in the trace then.

        Raises:
            EngineFailedError: the engine process failed or died.
        """
        command: Command = RunLane(spec=spec)
        self._on_progress(spec.name, 0.0)
        self._send(msgspec.json.encode(command))
        self._wait_for(LaneDone)

    def stop(self) -> None:
        """End the process: by its own will, else by force."""
        if self._process.poll() is None:
            try:
                self._send(msgspec.json.encode(Stop()))
                self._process.wait(SECONDS_TO_STOP)
            except (OSError, VcachediagError, subprocess.TimeoutExpired):
                pass
        self.kill()

    def kill(self) -> None:
        """End the process and all its children now."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._replies.close()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    def _send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._died() from None

    def _wait_for(self, kind: type[Ready] | type[LaneDone]) -> None:
        for line in self._replies:
            reply = self._decoder.decode(line)
            if isinstance(reply, Failed):
                raise self._failure(reply)
            if isinstance(reply, Progress):
                self._on_progress(reply.lane, reply.done / max(1, reply.total))
            elif isinstance(reply, Stage):
                self._on_progress(reply.doing, None)
            elif isinstance(reply, kind):
                return
        raise self._died()

    def _failure(self, reply: Failed) -> VcachediagError:
        kind, hint = _ERRORS.get(reply.exit_code), reply.hint
        if self._redact and (ENGINE_LOG in hint if hint else kind is None):
            hint = NO_LOG
        if kind is not None:
            error = kind(reply.message, cause=reply.cause, hint=hint)
        else:
            error = EngineFailedError(reply.message, cause=reply.cause, hint=hint,
                                      log=self._last_lines())
        error.traceback_text = reply.traceback
        return error

    def _died(self) -> EngineFailedError:
        code = self._process.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return EngineFailedError("the engine process died", cause=how, log=self._last_lines(),
                                 hint=NO_LOG if self._redact else None)

    def _last_lines(self) -> tuple[str, ...]:
        if self._redact:
            return ()
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - 65_536))
            lines = log.read().decode("utf-8", "replace").splitlines()
        return tuple(line if len(line) <= LOG_LINE_SHOWN else f"{line[:LOG_LINE_SHOWN]}..."
                     for line in lines[-LOG_LINES_SHOWN:])
