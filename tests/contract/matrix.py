"""What every release has of the table, as text and as rows of the README's table."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.contract.check import Outcome
from tests.contract.releases import Release

WIDTH = 80
_CELL = 3
LEGEND = """\
1 2 3  there, at the first, second, third of the table's places
-      missing or different, and optional: done otherwise, or not observed
!      missing or different, and needed
*      a release that is supported: no `!` may be in its column"""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One release and what it has, in the order of the table."""

    release: Release
    outcomes: tuple[Outcome, ...]

    def missing(self, *, optional: bool) -> list[Outcome]:
        """What it lacks of the optional or of the needed capabilities."""
        return [one for one in self.outcomes if not one.ok and one.optional is optional]


def broken_promises(columns: Iterable[Column]) -> list[str]:
    """A line for everything needed that a supported release lacks."""
    return [f"{column.release.version}  {one.name}: {'; '.join(one.gaps)}"
            for column in columns if column.release.supported
            for one in column.missing(optional=False)]


def as_text(columns: Sequence[Column]) -> str:
    """The matrix, its legend and the reason of every gap; at most `WIDTH` columns."""
    room = WIDTH - _CELL * len(columns)
    # `0.28.0` over two lines: 28 and .0.
    parts = [column.release.version.removeprefix("0.").partition(".") for column in columns]
    lines = ["vLLM 0.".ljust(room) + _cells(minor for minor, _, _ in parts),
             "".ljust(room) + _cells(f".{patch}" for _, _, patch in parts),
             "supported".ljust(room) + _cells(
                 "*" if column.release.supported else "" for column in columns)]
    for row in zip(*(column.outcomes for column in columns), strict=True):
        name = row[0].name
        marks = _cells(map(_mark, row))
        lines += [name.ljust(room) + marks] if len(name) < room else [name, " " * room + marks]
    lines += ["", *LEGEND.splitlines(), *_reasons(columns)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _cells(texts: Iterable[str]) -> str:
    return "".join(text.rjust(_CELL) for text in texts)


def _mark(outcome: Outcome) -> str:
    if outcome.ok and outcome.place is not None:
        return str(outcome.place + 1)
    return "-" if outcome.optional else "!"


def _reasons(columns: Sequence[Column]) -> list[str]:
    versions: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for column in columns:
        for one in column.outcomes:
            if not one.ok:
                versions.setdefault((one.name, one.gaps), []).append(column.release.version)
    lines: list[str] = []
    for (name, gaps), where in sorted(versions.items()):
        lines += ["", *_wrapped(f"{name} in {', '.join(where)}", "  ")]
        for gap in gaps:
            lines += _wrapped(f"  {gap}", "    ")
    return lines


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def as_markdown(columns: Iterable[Column]) -> str:
    """The README's table, newest release first."""
    lines = ["| vLLM | supported | names and signatures there | run live | not seen there |",
             "|---|---|---|---|---|"]
    for column in reversed(tuple(columns)):
        there = sum(one.ok for one in column.outcomes)
        # An older name that a newer one has replaced is no loss.
        lost = [f"`{one.name}`" for one in column.missing(optional=False)]
        lost += [one.lost for one in column.missing(optional=True) if one.lost]
        lines.append("| " + " | ".join((
            column.release.version, "yes" if column.release.supported else "no",
            f"{there} of {len(column.outcomes)}", column.release.live or "no",
            ", ".join(dict.fromkeys(lost)) or "nothing")) + " |")
    return "\n".join(lines) + "\n"
