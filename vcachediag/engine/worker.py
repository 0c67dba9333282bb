"""The engine process: `python -m vcachediag.engine.worker FD`, started by the supervisor.

Commands come as JSON lines on stdin, replies go to the file descriptor FD; stdout and stderr
are the engine log.
"""

import os
import secrets
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import msgspec

from vcachediag.engine.jobs import (
    Command,
    Failed,
    Job,
    LaneDone,
    Progress,
    Ready,
    Reply,
    RunLane,
    Stage,
)
from vcachediag.errors import EngineFailedError, VcachediagError
from vcachediag.trace.redact import Redactor, own_words
from vcachediag.trace.writer import EventWriter

Say = Callable[[Reply], None]


def main() -> None:
    """Serve one supervisor until it says stop or goes away."""
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    encoder = msgspec.json.Encoder()

    def say(reply: Reply) -> None:
        os.write(descriptor, encoder.encode(reply) + b"\n")

    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
    # The salt lives in this process only, and is gone with it.
    redact = Redactor(secrets.token_bytes(32)) if job.redact else None
    with EventWriter(Path(job.trace), "engine", redact) as writer:
        try:
            _serve(job, writer, say)
        except VcachediagError as error:
            say(_reply(error, job))
        except Exception as error:  # noqa: BLE001  # whatever vLLM or the plugin raises
            traceback.print_exc()
            failure = EngineFailedError("the engine failed", cause=_words(error))
            failure.__cause__ = error
            say(_reply(failure, job))
    sys.stdout.flush()
    # vLLM leaves threads behind that would keep the process alive.
    os._exit(0)


def _reply(error: VcachediagError, job: Job) -> Failed:
    """What the command is told, without any message that is not ours if the job is redacted."""
    if not job.redact:
        return Failed(exit_code=error.exit_code, message=error.message, cause=error.cause,
                      hint=error.hint, traceback=traceback.format_exc())
    source = error.__cause__ or error
    where = traceback.format_tb(source.__traceback__)
    return Failed(exit_code=error.exit_code, message=own_words(error.message),
                  cause=None if error.cause is None else own_words(error.cause), hint=error.hint,
                  traceback="".join([*where, type(source).__name__]))


def _serve(job: Job, writer: EventWriter, say: Say) -> None:
    _prepare_environment()
    say(Stage(doing="importing vLLM"))
    started = time.monotonic()
    from vcachediag.engine import start

    lanes, close = start.start(job, writer, lambda doing: say(Stage(doing=doing)))
    say(Ready(seconds=time.monotonic() - started))
    decoder = msgspec.json.Decoder(Command)
    for line in sys.stdin.buffer:
        command = decoder.decode(line)
        if not isinstance(command, RunLane):
            break
        name = command.spec.name

        def progress(done: int, total: int, name: str = name) -> None:
            say(Progress(lane=name, done=done, total=total))

        try:
            lanes.run(command.spec, progress)
        except VcachediagError:
            raise
        except Exception as error:
            traceback.print_exc()
            raise EngineFailedError(
                f"the engine failed in {lanes.current}", cause=_words(error),
                hint="if only runs with a cache hit fail, the plugin cannot resume a prefill"
                     if name == "cached" else None) from error
        say(LaneDone(lane=name))
    close()


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"


def _prepare_environment() -> None:
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")


if __name__ == "__main__":
    main()
