"""A recording that is killed leaves a trace that can be read and reported."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tests.engine.conftest import ENVIRONMENT, MODEL, ROOT, RUNNERS
from vcachediag.trace.reader import read_trace

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]
KILLS = 20


def start(out):
    """A replay of a faulty plugin, with its engine in the same process group."""
    return subprocess.Popen(
        [sys.executable, "-m", "vcachediag", "replay",
         str(ROOT / "examples" / "01_same_request_twice" / "requests.jsonl"), "--plugin",
         "plugins/faults/never_stops.py", "--out", str(out), "--", str(MODEL), "--block-size",
         "32", "--dtype", "float32", "--gpu-memory-utilization", "0.2"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT,
        env=ENVIRONMENT | RUNNERS["V1"], start_new_session=True)


def engine_of(process):
    """The process id of the engine that a replay started; None: there is none."""
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)],
                              capture_output=True, text=True, check=False).stdout.split()
    return int(children[0]) if children else None


def kill(process):
    """`kill -9` of the replay and of its engine, both at once."""
    engine = engine_of(process)
    os.kill(process.pid, signal.SIGKILL)
    if engine is not None:
        os.kill(engine, signal.SIGKILL)
    process.wait()


def has_events(out):
    """Whether anything was recorded."""
    return any(path.stat().st_size for path in (out / "events").glob("*.jsonl"))


def wait_for(process, condition):
    """Wait until `condition` holds or the process ends; returns the moment."""
    while not condition() and process.poll() is None:
        time.sleep(0.01)
    return time.monotonic()


def report(out):
    """`vcachediag report` on a trace."""
    return subprocess.run([sys.executable, "-m", "vcachediag", "report", str(out)],
                          capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)


def test_killed_at_any_moment_it_is_readable(tmp_path):
    """`kill -9` at 20 random moments of a replay: 20 readable traces, each reported with what is
    missing.
    """
    whole = tmp_path / "whole.vcd"
    process = start(whole)
    begun = wait_for(process, lambda: (whole / "header.json").exists())
    recording = wait_for(process, lambda: has_events(whole))
    process.wait()
    ended = time.monotonic()
    assert 1 == report(whole).returncode
    events = len(read_trace(whole).events)

    generator = random.Random(20)
    recorded, torn = [], 0
    for number in range(KILLS):
        out = tmp_path / f"killed-{number}.vcd"
        process = start(out)
        # Starting an engine takes longer than the lanes: most are killed while there is something
        # to lose.
        if number % 4:
            wait_for(process, lambda out=out: has_events(out))
            time.sleep(generator.uniform(0, 0.9 * (ended - recording)))
        else:
            wait_for(process, lambda out=out: (out / "header.json").exists())
            time.sleep(generator.uniform(0, recording - begun))
        kill(process)
        trace = read_trace(out)
        done = report(out)
        recorded.append(len(trace.events))

        assert done.returncode in (1, 3), done.stderr
        # A machine that is faster now may have finished: that trace is whole.
        assert ("the recording was not closed" in done.stdout) == (trace.footer is None)
        assert len(trace.damage) <= 2
        torn += trace.footer is None
    assert torn >= KILLS / 2
    assert 0 <= min(recorded) < max(recorded) <= events
    print(f"{torn} of {KILLS} torn, after {sorted(recorded)} of {events} records")
