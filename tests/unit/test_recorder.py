"""Our entry point in vLLM."""

import subprocess
import sys

import pytest

from vcachediag.engine import recorder


def test_unasked_it_imports_nothing() -> None:
    """In a server that is none of ours, the entry point costs nothing."""
    code = ("import sys; before = set(sys.modules)\n"
            "from vcachediag.engine.recorder import register; register()\n"
            "print(sorted(name for name in set(sys.modules) - before"
            " if not name.startswith(('vcachediag', 'collections'))))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == done.stdout.strip()


def test_hooks_are_put_in_once() -> None:
    """vLLM may call the entry point more than once in a process, and it may not call it at all."""
    calls: list[str] = []
    recorder.arm(lambda: calls.append("install"))
    recorder.register()
    recorder.register()
    recorder.ensure()
    assert ["install"] == calls

    recorder.arm(lambda: calls.append("late"))
    recorder.ensure()
    assert ["install", "late"] == calls


@pytest.mark.engine
def test_vllm_calls_it() -> None:
    """vLLM finds the entry point by itself and calls it."""
    pytest.importorskip("vllm", reason="no vLLM in this environment")
    code = ("from vcachediag.engine import recorder; import sys\n"
            "recorder.arm(lambda: print('from', sys._getframe(2).f_code.co_name))\n"
            "from vllm.plugins import load_general_plugins; load_general_plugins()")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "from register" in done.stdout
