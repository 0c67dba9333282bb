"""`make test-versions`: the engine tests on several vLLM releases, printed as a matrix.

One environment serves them all: each release is unpacked into a folder of its own that stands
before the environment's vLLM on PYTHONPATH. All of them run on one torch.
"""

import argparse
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from tests.contract.releases import RELEASES

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".versions"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The engine tests on one release."""

    version: str
    passed: int
    failed: int
    skipped: int
    seconds: float


def unpack(version: str, package: str) -> Path:
    """The folder with that release's vLLM, fetched by name if it is not there."""
    folder = CACHE / version
    if not (folder / "vllm").is_dir():
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "-qq",
             "--no-deps", "--target", str(folder), f"{package}=={version}"], check=True)
    # Up to 0.31 vLLM asks for the version of a package `vllm` before it takes a Triton for the CPU;
    # a build from source is called that, the package on the index is not.
    named = folder / f"vllm-{version}+cpu.dist-info"
    named.mkdir(exist_ok=True)
    (named / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")
    return folder


def run(version: str, folder: Path, arguments: list[str]) -> Outcome:
    """Run the engine tests with the vLLM in `folder`."""
    report = CACHE / f"{version}.xml"
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/engine", f"--junitxml={report}", *arguments],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=False)
    suite = ElementTree.parse(report).getroot()[0]
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    skipped = int(suite.get("skipped", 0))
    return Outcome(version=version, failed=failed, skipped=skipped,
                   passed=int(suite.get("tests", 0)) - failed - skipped,
                   seconds=time.monotonic() - started)


def main() -> None:
    """Run and print; exit 1 if a test failed or none ran."""
    live = [release for release in RELEASES if release.live == "yes"]
    parser = argparse.ArgumentParser(prog="make test-versions", description=__doc__)
    parser.add_argument("--only", action="append", help="a version, repeatable",
                        choices=[release.version for release in live])
    options, arguments = parser.parse_known_args()
    CACHE.mkdir(exist_ok=True)
    outcomes = [run(release.version, unpack(release.version, release.package), arguments)
                for release in live if release.version in (options.only or [release.version])]
    print("vLLM     passed  failed  skipped  seconds")
    for one in outcomes:
        print(f"{one.version:7}  {one.passed:6}  {one.failed:6}  {one.skipped:7}  "
              f"{one.seconds:7.0f}")
    sys.exit(any(one.failed or not one.passed for one in outcomes))


if __name__ == "__main__":
    main()
