"""`replay` from end to end, without its screen: requests, lanes, trace, verdict."""

import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from vcachediag import __version__
from vcachediag.analysis.records import Verdict
from vcachediag.analysis.verdict import judge
from vcachediag.engine.jobs import CACHED, DECODE, REFERENCE, REFERENCE_2, Job
from vcachediag.engine.supervisor import EngineProcess
from vcachediag.errors import FileError, InterruptedRunError, VcachediagError
from vcachediag.requests import RequestFile, read_requests
from vcachediag.trace.reader import read_trace
from vcachediag.trace.records import SCHEMA_VERSION, Footer, Header, Trace
from vcachediag.trace.redact import own_words
from vcachediag.trace.writer import (
    EVENTS,
    HEADER,
    REQUESTS,
    create_trace,
    now,
    write_footer,
)


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """What the command line of `replay` says."""

    requests: Path
    engine_arguments: tuple[str, ...]
    plugins: tuple[str, ...] = ()
    repeat: int = 2
    max_tokens: int = 256
    #: Where the trace goes; None: a temporary folder, removed after a run that went well.
    out: Path | None = None
    force: bool = False
    #: Leave out of the trace what prompts and answers say.
    redact: bool = False


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """A verdict and the trace that it was judged from."""

    verdict: Verdict
    trace: Trace


def replay(options: ReplayOptions, on_progress: Callable[[str, float | None], None]) -> Replayed:
    """Record the base lanes in one engine and judge them.

    Raises:
        VcachediagError: nothing could be judged; what was recorded is kept and named.
    """
    requests = read_requests(options.requests)
    folder = _make_folder(options, requests)
    keep = options.out is not None
    try:
        _record(options, requests, folder, on_progress)
        trace = read_trace(folder)
        verdict = judge(trace)
        if keep:
            again = f"See this again without vLLM: vcachediag report {shlex.quote(str(folder))}"
            verdict = msgspec.structs.replace(verdict, next_steps=(*verdict.next_steps, again))
        return Replayed(verdict=verdict, trace=trace)
    except VcachediagError as error:
        if keep or _has_records(folder):
            keep = True
            error.kept = str(folder)
        raise
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _make_folder(options: ReplayOptions, requests: RequestFile) -> Path:
    if options.out is None:
        folder = Path(tempfile.mkdtemp(prefix="vcachediag-"))
    else:
        folder = options.out
        if folder.exists() and options.force:
            _remove(folder)
    create_trace(folder, Header(
        schema=SCHEMA_VERSION, tool=__version__, started=now(), argv=tuple(sys.argv),
        request_file=str(options.requests), plugins=options.plugins,
        engine_arguments=options.engine_arguments, repeat=options.repeat,
        max_tokens=options.max_tokens, redacted=options.redact,
        notes=(*requests.notes, *_greedy(requests))))
    return folder


def _has_records(folder: Path) -> bool:
    """Whether anything was recorded before the run failed."""
    files = [folder / REQUESTS, *(folder / EVENTS).glob("*.jsonl")]
    return any(path.exists() and path.stat().st_size for path in files)


def _greedy(requests: RequestFile) -> tuple[str, ...]:
    """Say it when a request asked for something random."""
    asked = [request.id for request in requests.requests
             if (request.sampling.get("temperature") or 0) > 0]
    if not asked:
        return ()
    more = f" and {len(asked) - 3} more" if len(asked) > 3 else ""
    return (f"Every lane is greedy; the temperature of {', '.join(asked[:3])}{more} is set aside.",)


def _remove(folder: Path) -> None:
    """Remove an old trace, and nothing that is not one."""
    if folder.is_dir() and ((folder / HEADER).exists() or not any(folder.iterdir())):
        shutil.rmtree(folder)
    else:
        raise FileError(f"{folder} exists and is not a trace", hint="--force replaces only traces")


def _record(options: ReplayOptions, requests: RequestFile, folder: Path,
            on_progress: Callable[[str, float | None], None]) -> None:
    job = Job(trace=str(folder.resolve()), requests=requests, plugins=options.plugins,
              engine_arguments=options.engine_arguments, max_tokens=options.max_tokens,
              redact=options.redact)
    engine = EngineProcess(job, on_progress)
    try:
        engine.start()
        for spec in (msgspec.structs.replace(CACHED, repeat=options.repeat), REFERENCE,
                     REFERENCE_2, DECODE):
            engine.run_lane(spec)
        write_footer(folder, Footer(outcome="complete", ended=now()))
        engine.stop()
    except KeyboardInterrupt:
        write_footer(folder, Footer(outcome="interrupted", ended=now()))
        raise InterruptedRunError("interrupted") from None
    except VcachediagError as error:
        detail = own_words(error.message) if options.redact else error.message
        write_footer(folder, Footer(outcome="failed", ended=now(), detail=detail))
        raise
    finally:
        engine.kill()
