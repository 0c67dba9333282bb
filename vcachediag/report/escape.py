"""Text from models, files and images, made safe to print and true to its columns.

Such text may hold terminal escapes, characters that reorder a line, or characters without a
width. What cannot be seen or would act on the terminal is shown as an escape instead; letters of
every script stay as they are. Widths are terminal cells, not characters.
"""

import unicodedata

from rich.cells import cell_len

#: Ends a text that was shortened.
MARK = "…"
#: Characters without a width that are kept in a shortened text.
MOST_MARKS = 200
#: Shown for a space in a token that consists of nothing else.
SPACE = "␠"
#: Carries a combining mark that has no letter of its own.
CARRIER = "◌"

_NAMED = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}
# Control, format (bidi and zero-width ones), surrogate, private, unassigned; every separator
# but the plain space: none of them shows what it is, and most have no agreed width.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
_COMBINING = frozenset({"Mn", "Me"})


def escape(text: str) -> str:
    r"""`text` on one line, with `\n`, `\t`, `\x1b`, `\u202e` for what cannot be seen."""
    shown = "".join(_escape_character(character) for character in text)
    if shown and unicodedata.category(shown[0]) in _COMBINING:
        return CARRIER + shown
    return shown


def escape_token(text: str, token_id: int) -> str:
    """A token's text as one table cell, never blank: spaces shown, or its id when it is empty."""
    if not text:
        return f"#{token_id}"
    if not text.strip(" "):
        return SPACE * len(text)
    return escape(text)


def shorten(text: str, cells: int) -> str:
    """`text` in at most `cells` cells; a cut is marked by `…`."""
    if cell_len(text) <= cells:
        return text
    kept = fitting(text, cells - cell_len(MARK))
    return kept.rstrip(" ") + MARK


def fitting(text: str, cells: int) -> str:
    """The longest beginning of `text` that fits into `cells` cells."""
    # No character that `escape` leaves is wider than two cells; a few take none, and a text of
    # nothing else is not worth looking through.
    end = min(len(text), max(cells, 0))
    most = min(len(text), end + MOST_MARKS)
    while end < most and cell_len(text[: end + 1]) <= cells:
        end += 1
    while end > 0 and cell_len(text[:end]) > cells:
        end -= 1
    return text[:end]


def pad(text: str, cells: int, *, right: bool) -> str:
    """`text` filled with spaces to `cells` cells, at its left when it is to stand `right`."""
    fill = " " * max(0, cells - cell_len(text))
    return fill + text if right else text + fill


def run_label(run: str, cells: int = 24) -> str:
    """A run's name for people: `cached/r1#2` is `cached r1#2`; attempt marks are never cut."""
    lane, _, request = escape(run).partition("/")
    label = f"{lane} {request}".strip(" ")
    if cell_len(label) <= cells:
        return label
    stem, mark, attempt = label.rpartition("#")
    if not mark or not attempt.isdecimal() or len(attempt) > 6:
        return shorten(label, cells)
    return shorten(stem, cells - len(attempt) - 1) + mark + attempt


def _escape_character(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    if character == " ":
        return character
    code = ord(character)
    # Variation selectors change the width of what stands before them, but only on some terminals.
    selector = 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF
    if not selector and unicodedata.category(character) not in _UNSEEN:
        return character
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
