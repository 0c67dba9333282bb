"""`make contract` and `make contract-index`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.contract.check import check_all
from tests.contract.fetch import fetch
from tests.contract.matrix import Column, as_markdown, as_text, broken_promises
from tests.contract.releases import INDEXES, RELEASES, Release
from tests.contract.store import NotIndexedError, Tree, build_index, dump, load
from vcachediag.engine.capability_table import CAPABILITIES

CACHE = Path(".contract")


def main(arguments: Sequence[str]) -> int:
    """Check every release; 1: a supported one lacks something, or its facts are not current."""
    parser = argparse.ArgumentParser(prog="make contract", description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite the committed facts")
    parser.add_argument("--offline", action="store_true", help="use the committed facts only")
    parser.add_argument("--markdown", action="store_true", help="print the README's table")
    options = parser.parse_args(arguments)
    problems: list[str] = []
    try:
        if not options.offline:
            problems += _compare(write=options.write)
        columns = [column(release) for release in RELEASES]
    except (NotIndexedError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(as_markdown(columns) if options.markdown else as_text(columns), end="")
    problems += broken_promises(columns)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


def column(release: Release) -> Column:
    """What a release has, by its committed facts."""
    index = load(release.index.read_text(encoding="utf-8"))
    return Column(release=release, outcomes=check_all(CAPABILITIES, index))


def _compare(*, write: bool) -> list[str]:
    """Extract the facts of every release anew; a line for each that is not as committed."""
    problems = []
    for release in RELEASES:
        print(f"{release.package} {release.version}", file=sys.stderr)
        now = dump(build_index(release.version, Tree(fetch(release, CACHE)), CAPABILITIES))
        if write:
            INDEXES.mkdir(exist_ok=True)
            release.index.write_text(now, encoding="utf-8")
        elif not release.index.is_file() or release.index.read_text(encoding="utf-8") != now:
            problems.append(f"{release.index.name} is not what the sources say: "
                            "run make contract-index")
    if write:
        for path in set(INDEXES.glob("*.json")) - {release.index for release in RELEASES}:
            path.unlink()
    return problems


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
