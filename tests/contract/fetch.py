"""Gets the Python files of a release, without installing it."""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.contract.releases import Release

#: Wheels for these, whatever this machine is: only the Python files in them are used.
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64",
             "manylinux1_x86_64")
#: A Python that every release has a wheel for.
PYTHON = "3.12"


def fetch(release: Release, cache: Path) -> Path:
    """The folder that holds the release's `vllm/`; downloads once, keeps only `*.py`.

    Raises:
        RuntimeError: pip could not download the wheel; its own words follow.
    """
    root = cache / release.version
    if root.is_dir():
        return root
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".part-") as folder:
        sources = Path(folder) / "sources"
        with zipfile.ZipFile(_download(release, Path(folder))) as wheel:
            wheel.extractall(sources, [name for name in wheel.namelist()
                                       if name.startswith("vllm/") and name.endswith(".py")])
        # In one step, so that an interrupted run leaves nothing that looks complete.
        shutil.move(sources, root)
    return root


def _download(release: Release, folder: Path) -> Path:
    # A wheel and not the source archive: pip would run that one's build to read its metadata.
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
               "--no-deps", "--only-binary", ":all:", "--python-version", PYTHON, *platforms,
               "--dest", str(folder), f"{release.package}=={release.version}"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if finished.returncode or len(wheels) != 1:
        raise RuntimeError(f"pip has no wheel of {release.package} {release.version}:\n"
                           f"{finished.stderr.strip()}")
    return wheels[0]
