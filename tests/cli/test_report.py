"""`vcachediag report`: saved traces, exit codes, and no vLLM."""

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"


def run(*arguments: str, python: str = sys.executable,
        **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line; output as of an 80-column pipe."""
    return subprocess.run(
        [python, "-m", "vcachediag", *arguments], capture_output=True, text=True, cwd=ROOT,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1", **environment}, timeout=60,
        check=False)


@pytest.mark.parametrize(("name", "code", "status"), [
    ("same", 0, "SAME"), ("diverged", 1, "DIVERGED")])
def test_a_saved_trace_is_reported_again(name: str, code: int, status: str) -> None:
    """The report and its exit code are those of the run; nothing is said on stderr."""
    text = run("report", str(DATA / f"{name}.trace"))
    data = run("report", str(DATA / f"{name}.trace"), "--format", "json")

    assert (code, "") == (text.returncode, text.stderr)
    assert text.stdout.startswith(status)
    assert (code, status) == (data.returncode, json.loads(data.stdout)["status"])


def test_output_goes_to_a_file(tmp_path: Path) -> None:
    """`-o` writes the report, and does not replace a file unless told to."""
    out = tmp_path / "report.txt"
    trace = str(DATA / "same.trace")

    assert (0, "") == ((first := run("report", trace, "-o", str(out))).returncode, first.stdout)
    assert out.read_text().startswith("SAME")
    assert 7 == run("report", trace, "-o", str(out)).returncode
    assert 0 == run("report", trace, "-o", str(out), "--force").returncode


@pytest.mark.parametrize(("make", "cause"), [
    (lambda _: None, "there is no such folder"),
    (lambda path: path.write_text("x"), "it is a file"),
    (lambda path: path.mkdir(), "No such file or directory")])
def test_what_is_not_a_trace(tmp_path: Path, make, cause: str) -> None:  # type: ignore[no-untyped-def]
    """One line, cause, hint; exit code 7."""
    path = tmp_path / "t"
    make(path)
    done = run("report", str(path))

    assert (7, "") == (done.returncode, done.stdout)
    error, why, hint = done.stderr.splitlines()
    assert error.startswith("error: ")
    assert why.startswith("  caused by: ")
    assert cause in why
    assert hint.startswith("hint: ")


@pytest.mark.parametrize("count", [0, 3])
def test_one_trace_or_two(count: int) -> None:
    """Anything else is misuse."""
    done = run("report", *[str(DATA / "same.trace")] * count)

    assert 2 == done.returncode
    assert "hint: vcachediag report TRACE" in done.stderr


def test_two_traces() -> None:
    """Side by side, exit code 0 even where they differ."""
    done = run("report", str(DATA / "same.trace"), str(DATA / "diverged.trace"))

    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith("settings and outcomes differ\n")


def test_schema() -> None:
    """The schema of a trace's records is JSON on stdout."""
    done = run("report", "--schema")

    assert 0 == done.returncode
    assert "StepRecord" in json.loads(done.stdout)["$defs"]


def required(name: str, found: set[str] | None = None) -> set[str]:
    """What an installed distribution requires, with all that those require."""
    found = set() if found is None else found
    for line in metadata.requires(name) or ():
        requirement = Requirement(line)
        if (requirement.marker is None or requirement.marker.evaluate({"extra": ""})) and (
                requirement.name not in found):
            found.add(requirement.name)
            required(requirement.name, found)
    return found


def test_neither_vllm_nor_torch_is_needed(tmp_path: Path) -> None:
    """In an environment that has only what the package requires, a trace is reported just so."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")],
                   check=True)
    python = str(tmp_path / "env" / "bin" / "python")
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in required("vcachediag"):
        for file in metadata.files(name) or ():
            top = file.parts[0]
            target = Path(str(file.locate())).parents[len(file.parts) - 2] if len(
                file.parts) > 1 else Path(str(file.locate()))
            if top not in ("..", "__pycache__") and not (packages / top).exists():
                (packages / top).symlink_to(target)
    (packages / "vcachediag").symlink_to(ROOT / "vcachediag")
    for module in ("torch", "vllm"):
        missing = subprocess.run([python, "-c", f"import {module}"], capture_output=True,
                                 env={"PYTHONPATH": str(packages)}, cwd=tmp_path, check=False)
        assert b"ModuleNotFoundError" in missing.stderr

    for arguments in (["same.trace"], ["diverged.trace", "--format", "json"],
                      ["same.trace", "diverged.trace"]):
        named = [str(DATA / each) if each.endswith(".trace") else each for each in arguments]
        here = run("report", *named)
        there = run("report", *named, python=python, PYTHONPATH=str(packages))
        assert (here.returncode, here.stdout, "") == (
            there.returncode, there.stdout, there.stderr)
