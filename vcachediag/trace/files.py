"""Reads the files of a trace that may come from a stranger: regular files only, and only so much.

A trace may have been made by anybody. Its folder is not trusted to hold what it should: links
are not followed, what is not a plain file is not opened for reading, and no line or file is
held in memory beyond the limits below.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

#: A header or footer.
MOST_BYTES_OF_A_RECORD = 1 << 20
#: One line of events; a prompt of a million tokens has about 8 MB.
MOST_BYTES_OF_A_LINE = 16 << 20
#: All files of events together.
MOST_BYTES = 2 << 30
#: Records of all files together.
MOST_RECORDS = 20_000_000
#: Processes that can have recorded.
MOST_FILES = 4096
_PIECE = 1 << 16


class NotPlainError(OSError):
    """A link, a pipe, a device or a folder where a file should be."""


def open_plain(path: Path) -> int:
    """A descriptor of a regular file that is not behind a link.

    Raises:
        OSError: it is missing or cannot be read.
        NotPlainError: it is something else than a regular file.
    """
    try:
        # Without O_NONBLOCK a named pipe would wait for somebody to write into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if path.is_symlink():
            raise NotPlainError(f"{path.name} is a link") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotPlainError(f"{path.name} is not a regular file")
    return descriptor


def read_small(path: Path) -> bytes:
    """A whole small file.

    Raises:
        OSError: it cannot be read, is not a regular file, or is too large.
    """
    with os.fdopen(open_plain(path), "rb") as stream:
        data = stream.read(MOST_BYTES_OF_A_RECORD + 1)
    if len(data) > MOST_BYTES_OF_A_RECORD:
        raise OSError(f"{path.name} is larger than {MOST_BYTES_OF_A_RECORD >> 20} MiB")
    return data


def read_lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """(line number, line with its end) of a file; None for a line that is too long to be held.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with os.fdopen(open_plain(path), "rb") as stream:
        number = 0
        while True:
            line = stream.readline(MOST_BYTES_OF_A_LINE)
            if not line:
                return
            number += 1
            if line.endswith(b"\n") or len(line) < MOST_BYTES_OF_A_LINE:
                yield number, line
                continue
            while line and not line.endswith(b"\n"):
                line = stream.readline(_PIECE)
            yield number, None


def event_files(folder: Path) -> list[Path]:
    """The files of events, by name.

    Raises:
        OSError: the folder is missing, or is a link or a file.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise NotPlainError(f"{folder.name} is not a folder")
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.name.endswith(".jsonl"))
    return [folder / name for name in names]
