"""A request file, read as a whole."""

from pathlib import Path

from vcachediag.errors import RequestFileError
from vcachediag.requests.build import Builder
from vcachediag.requests.lines import SHAPE_HINT, read_objects
from vcachediag.requests.records import RequestFile


def read_requests(path: Path) -> RequestFile:
    """Return the requests and control lines of a file, checked, with their pictures.

    Raises:
        RequestFileError: anything about the file or a picture is wrong; it names the line.

    """
    builder = Builder(path.parent)
    items = tuple(builder.build(line, where) for where, line in read_objects(path))
    notes: tuple[str, ...] = ()
    if builder.ignored:
        listed = ", ".join(f"`{name}`" for name in sorted(builder.ignored))
        notes = (f"fields without effect here, ignored: {listed}",)
    file = RequestFile(path=str(path), items=items, notes=notes)
    if not file.requests:
        raise RequestFileError(path, None, "holds no request", hint=SHAPE_HINT)
    return file
