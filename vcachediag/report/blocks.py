"""The block table of a run beside that of the same request without a hit."""

from dataclasses import dataclass

from vcachediag.analysis.ledger import BlockUse
from vcachediag.report.escape import escape, run_label
from vcachediag.report.figures import counted
from vcachediag.report.lines import HEADING, MUTED, Lines, paragraph
from vcachediag.report.tables import Column, Row, table
from vcachediag.report.view import UNFOLD, View
from vcachediag.trace.records import LookupRecord, RequestRecord

#: More rows than this are folded in the middle.
MOST_ROWS = 12


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """Places of the table that look alike on both sides."""

    left: list[BlockUse]
    right: list[BlockUse]
    holds: str

    @property
    def sides(self) -> tuple[BlockUse, ...]:
        return (*self.right, *self.left)


def blocks_section(view: View) -> Lines:
    """Which blocks a run hit, from whom, and which it computed; nothing when none were seen."""
    verdict = view.verdict
    uses = [use for use in verdict.blocks if use.group == 0]
    if verdict.focus is None or not uses:
        return []
    right = {use.place: use for use in uses if use.run == verdict.focus}
    left = {use.place: use for use in uses if use.run == verdict.beside}
    request = next((each for each in view.trace.requests
                    if each.id == _request_of(view, verdict.focus)), None)
    pieces = _pieces(left, right, request)
    names = [run_label(name, 14) if name else "n/o" for name in (verdict.beside, verdict.focus)]
    columns = (
        Column(title="block", align="right"), Column(title="tokens"),
        Column(title="holds", priority=2), Column(title="hash", priority=3),
        Column(title=names[0]), Column(title=names[1]),
        Column(title="donor", priority=1, shrink_to=10))
    lines = paragraph("# = physical block, donor = the run that wrote what was hit", view.width,
                      lead="Blocks   ", lead_style=HEADING)
    shown, folded = _fold(pieces, all_rows=view.all_steps)
    lines += table(columns, [_row(piece) for piece in shown], view.width)
    if folded:
        lines += paragraph(f"{counted(folded, 'row')} folded   {UNFOLD}", view.width,
                           lead="   ", style=MUTED)
    return lines + _lookup(view) + _other_groups(view)


def _request_of(view: View, run: str) -> str:
    summary = view.summary(run)
    return summary.request if summary is not None else ""


def _pieces(left: dict[int, BlockUse], right: dict[int, BlockUse],
            request: RequestRecord | None) -> list[_Piece]:
    pieces: list[_Piece] = []
    for place in sorted({*left, *right}):
        one = _Piece(left=[left[place]] if place in left else [],
                     right=[right[place]] if place in right else [],
                     holds=_holds(left.get(place), right.get(place), request))
        if pieces and _alike(pieces[-1], one):
            pieces[-1].left.extend(one.left)
            pieces[-1].right.extend(one.right)
        else:
            pieces.append(one)
    return pieces


def _alike(before: _Piece, one: _Piece) -> bool:
    return before.holds == one.holds and _follows(before.left, one.left) and _follows(
        before.right, one.right)


def _follows(before: list[BlockUse], one: list[BlockUse]) -> bool:
    if not before or not one:
        return not before and not one
    a, b = before[-1], one[0]
    return (a.place + 1 == b.place and a.block + 1 == b.block and a.origin == b.origin
            and a.donor == b.donor and (a.hash is None) == (b.hash is None))


def _holds(left: BlockUse | None, right: BlockUse | None, request: RequestRecord | None) -> str:
    """`image+text`, with how much is filled where it is not full."""
    uses = [use for use in (left, right) if use is not None and use.tokens is not None]
    if not uses or request is None:
        return "n/o"
    start, end = uses[0].tokens[0], max(use.tokens[1] for use in uses)  # type: ignore[index]  # filtered above
    prompt = len(request.prompt_token_ids)
    parts: list[tuple[int, str]] = []
    covered = 0
    for image in request.images:
        first, last = max(image.offset, start), min(image.offset + image.length, end)
        if first < last:
            parts.append((first, image.modality))
            covered += last - first
    inside = min(end, prompt) - start
    if inside > covered:
        first_part = min((place for place, _ in parts), default=end)
        parts.append((start if first_part > start else start + covered, "text"))
    if end > prompt:
        parts.append((max(prompt, start), "output"))
    words = "+".join(dict.fromkeys(escape(name) for _, name in sorted(parts)))
    return words or "n/o"


def _row(piece: _Piece) -> Row:
    first = piece.sides[0]
    count = max(len(piece.left), len(piece.right))
    places = f"{first.place}" if count == 1 else f"{first.place}-{first.place + count - 1}"
    ends = [use.tokens for use in piece.sides if use.tokens is not None]
    tokens = f"{min(a for a, _ in ends)}-{max(b for _, b in ends) - 1}" if ends else "n/o"
    digest = next((use.hash for use in piece.sides if use.hash), None)
    donor = next((use.donor for use in piece.right if use.donor), None)
    hit = any(use.origin == "hit" for use in piece.right)
    mark = "+" if count > 1 else ""
    return Row(
        cells=(places, tokens, piece.holds,
               "none" if digest is None else escape(digest[:8]) + mark,
               _side(piece.left), _side(piece.right),
               run_label(donor, 16) if donor else "n/o" if hit else ""),
        marker="" if hit or not piece.right else ">")


def _side(uses: list[BlockUse]) -> str:
    if not uses:
        return ""
    ids = f"#{uses[0].block}" if len(uses) == 1 else f"#{uses[0].block}-{uses[-1].block}"
    if uses[0].origin == "hit":
        return f"{ids} HIT"
    return f"{ids} {'stored' if uses[0].hash else 'computed'}"


def _fold(pieces: list[_Piece], *, all_rows: bool) -> tuple[list[_Piece], int]:
    """The first and last rows, and those around the first that was computed."""
    if all_rows or len(pieces) <= MOST_ROWS:
        return pieces, 0
    cut = next((place for place, piece in enumerate(pieces)
                if any(use.origin == "computed" for use in piece.right)), 0)
    kept = {*range(4), *range(len(pieces) - 2, len(pieces)), *range(cut - 2, cut + 3)}
    shown = [piece for place, piece in enumerate(pieces) if place in kept]
    return shown, len(pieces) - len(shown)


def _lookup(view: View) -> Lines:
    found = [record for record in view.records(LookupRecord) if record.run == view.verdict.focus]
    if not found:
        return paragraph("lookup n/o", view.width, lead="   ")
    first = found[0]
    more = f"; asked {len(found)} times" if len(found) > 1 else ""
    why = f" (not read: {escape(first.not_read)})" if first.not_read else ""
    return paragraph(
        f"Lookup asked {first.asked}, could hit {first.limit} at most (the last token is always "
        f"computed), found {first.found}{why}{more}.", view.width)


def _other_groups(view: View) -> Lines:
    groups = {use.group for use in view.verdict.blocks} - {0}
    if not groups:
        return []
    return paragraph(f"{counted(len(groups), 'further KV group')}: --format json", view.width,
                     style=MUTED)
