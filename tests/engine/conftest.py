"""Real processes on the embedded model."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "plugins" / "glyphocr" / "model"
ENVIRONMENT = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "NO_COLOR": "1",
               "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture
def replay() -> Callable[..., tuple[int, dict[str, Any]]]:
    """Run `vcachediag replay` on an example; returns the exit code and the JSON report."""

    def run(requests: str, plugin: str, dtype: str, *flags: str) -> tuple[int, dict[str, Any]]:
        done = subprocess.run(
            [sys.executable, "-m", "vcachediag", "replay", str(ROOT / "examples" / requests),
             "--plugin", plugin, "--format", "json", "--", str(MODEL), "--block-size", "32",
             "--dtype", dtype, "--gpu-memory-utilization", "0.2", *flags],
            capture_output=True, text=True, env=ENVIRONMENT, cwd=ROOT, timeout=240, check=False)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    return run


@pytest.fixture
def plain() -> Callable[..., dict[str, Any]]:
    """Run `plain_vllm.py`; returns its JSON."""

    def run(*arguments: str, plugin: str | None = None) -> dict[str, Any]:
        plugins = {"VCACHEDIAG_PLUGINS": json.dumps([plugin])} if plugin else {}
        done = subprocess.run(
            [sys.executable, str(Path(__file__).parent / "plain_vllm.py"), *arguments],
            capture_output=True, text=True, env=ENVIRONMENT | plugins, cwd=ROOT, timeout=580,
            check=False)
        assert done.stdout, done.stderr[-3000:]
        return json.loads(done.stdout)

    return run
