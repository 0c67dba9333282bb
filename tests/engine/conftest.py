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
#: The pictures of the second example, one line of text each.
IMAGES = sorted((ROOT / "examples" / "02_same_text_other_image" / "images").glob("*.png"))
MODEL = ROOT / "plugins" / "glyphocr" / "model"
ENVIRONMENT = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "NO_COLOR": "1",
               "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
#: Where `make test` puts Triton, and the backend that makes it run on a CPU.
TRITON = (Path(sys.prefix) / "triton", Path(__file__).parent / "triton_cpu")
RUNNERS = {
    "V1": {"VLLM_USE_V2_MODEL_RUNNER": "0"},
    "V2": {"VLLM_USE_V2_MODEL_RUNNER": "1", "TRITON_INTERPRET": "1",
           "TRITON_DEFAULT_BACKEND": "cpu",
           "PYTHONPATH": os.pathsep.join([*map(str, TRITON), os.environ.get("PYTHONPATH", "")])},
}


@pytest.fixture(scope="session")
def replay() -> Callable[..., tuple[int, dict[str, Any]]]:
    """Run `vcachediag replay` on an example; returns the exit code and the JSON report."""

    def run(requests: str, plugin: str, dtype: str, *flags: str, runner: str = "V1",
            out: Path | None = None) -> tuple[int, dict[str, Any]]:
        kept = [] if out is None else ["--out", str(out)]
        done = subprocess.run(
            [sys.executable, "-m", "vcachediag", "replay", str(ROOT / "examples" / requests),
             "--plugin", plugin, "--format", "json", *kept, "--", str(MODEL), "--block-size", "32",
             "--dtype", dtype, "--gpu-memory-utilization", "0.2", *flags],
            capture_output=True, text=True, env=ENVIRONMENT | RUNNERS[runner], cwd=ROOT,
            timeout=400, check=False)
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
