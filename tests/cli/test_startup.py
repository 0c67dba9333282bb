"""The command starts light: help needs no engine."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _imported_by_help() -> set[str]:
    """Top-level names of all modules that `vcachediag --help` imports."""
    command = [sys.executable, "-X", "importtime", "-m", "vcachediag", "--help"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    # import time:      self [us] | cumulative | imported package
    times = [line for line in finished.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in times}


def test_help_imports_neither_vllm_nor_torch() -> None:
    """`vcachediag --help` answers at once, also where there is no vLLM."""
    imported = _imported_by_help()

    assert "vcachediag" in imported
    assert set() == imported & {"vllm", "torch", "transformers"}
