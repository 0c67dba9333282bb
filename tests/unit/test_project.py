"""The project's own files: what they promise must be so."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from vcachediag.requests.read import read_requests

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
REQUEST_FILES = sorted(EXAMPLES.glob("*/*.jsonl"))
# Made by a test run of the repository itself, not part of it.
IGNORED = {"__pycache__"}


def _project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _locked(name: str) -> dict[str, str]:
    """Package -> version of a lock file."""
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    requirements = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(one.name): str(one.specifier).removeprefix("==")
            for one in requirements}


def _unsatisfied(requirements: list[str], versions: dict[str, str]) -> list[str]:
    parsed = [Requirement(text) for text in requirements]
    return [str(one) for one in parsed
            if not one.specifier.contains(versions.get(canonicalize_name(one.name), "0"))]


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.suffix in {".jsonl", ".png"}}


def test_import_contracts_hold() -> None:
    """Packages import only what stands below them, and only `engine` imports vLLM and torch."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert 0 == finished.returncode, finished.stdout + finished.stderr


def test_dependencies_are_satisfied_by_the_lock() -> None:
    """`pip install .` beside the locked vLLM has nothing to move."""
    assert [] == _unsatisfied(_project()["dependencies"], _locked("serve.lock"))


def test_test_tools_are_satisfied_by_the_locks() -> None:
    """The `dev` extra and the locks that `make test` installs speak of the same tools."""
    locked = _locked("serve.lock") | _locked("dev.lock")

    assert [] == _unsatisfied(_project()["optional-dependencies"]["dev"], locked)


def test_vllm_is_an_extra_and_no_dependency() -> None:
    """The user's vLLM and torch are never asked for, except by the extra `vllm`."""
    needed = {canonicalize_name(Requirement(text).name) for text in _project()["dependencies"]}
    extra = [Requirement(text).name for text in _project()["optional-dependencies"]["vllm"]]

    assert {"msgspec", "numpy", "pillow", "rich", "safetensors", "typer"} == needed
    assert ["vllm"] == extra


@pytest.mark.parametrize("name", ["torch.txt", "serve.lock", "dev.lock"])
def test_every_locked_requirement_is_an_exact_version(name: str) -> None:
    """A lock line is `name==version`, with a marker at most: no URL, no hash, no option."""
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    allowed = re.compile(r'#.*|[\w.-]+==[0-9a-z.]+( ; [a-z_]+ [=>]+ "[^"]+")?')

    assert [] == [line for line in lines if not allowed.fullmatch(line)]


def test_locks_do_not_overlap() -> None:
    """No package is pinned twice, and none of those that break a CPU environment is pinned."""
    serve, dev, torch = (set(_locked(name)) for name in ("serve.lock", "dev.lock", "torch.txt"))
    banned = {"torchvision", "torchaudio", "torchcodec"}

    assert set() == (serve & dev) | (serve & torch) | (dev & torch)
    assert set() == (serve | dev | torch) & banned


def test_ci_runs_the_test_command_of_the_readme() -> None:
    """What runs before a change lands is what the README tells people to run."""
    script = ROOT / ".ci" / "run"
    commands = [line for line in script.read_text().splitlines()
                if line and not line.startswith(("#", "set ", "cd "))]

    assert ["make test"] == commands
    assert "\n```\nmake test\n```\n" in (ROOT / "README.md").read_text()
    assert os.access(script, os.X_OK)


def test_readme_shows_both_commands_on_its_first_screen() -> None:
    """Nobody scrolls for `make demo` and `make test`."""
    screen = (ROOT / "README.md").read_text().splitlines()[:30]

    assert ["make demo", "make test"] == [line for line in screen if line.startswith("make ")]


def test_readme_has_every_exit_code() -> None:
    """The README's table of exit codes is complete, and has no code that does not exist."""
    from vcachediag.errors import ExitCode

    section = (ROOT / "README.md").read_text().partition("### Exit codes")[2].partition("\n## ")[0]

    assert [int(code) for code in ExitCode] == [
        int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)]


def test_examples_are_reproducible(tmp_path: Path) -> None:
    """`make_examples.py` writes the committed request files and images, byte for byte."""
    command = [sys.executable, str(EXAMPLES / "make_examples.py"), "--out", str(tmp_path)]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})

    assert _files(EXAMPLES) == _files(tmp_path)


def test_every_example_has_a_readme_and_requests() -> None:
    """An example is a folder with a README and a request file that the README's command names."""
    folders = sorted(path for path in EXAMPLES.iterdir()
                     if path.is_dir() and path.name not in IGNORED)
    named = [folder.name for folder in folders
             if f"{folder.relative_to(ROOT)}/requests.jsonl" in (folder / "README.md").read_text()]

    assert ["01_same_request_twice", "02_same_text_other_image"] == named
    assert [folder.name for folder in folders] == named


@pytest.mark.parametrize("path", REQUEST_FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_example_requests_are_readable(path: Path) -> None:
    """Every request file of the examples is read without a note, and says what it expects."""
    requests = read_requests(path)

    assert () == requests.notes
    assert [] == [request.id for request in requests.requests
                  if request.expect is None or len(request.images) != 1]


def test_sixteen_images_share_one_text() -> None:
    """In the second example only the images differ, and all of them do."""
    requests = read_requests(EXAMPLES / "02_same_text_other_image" / "requests.jsonl").requests

    assert 16 == len({request.images[0].data for request in requests})
    assert 1 == len({str(request.messages) for request in requests})
