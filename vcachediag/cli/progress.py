"""One line of progress on a terminal; silence in a pipe."""

from types import TracebackType
from typing import TextIO


class ProgressLine:
    """A bar per lane, with what is being done, drawn by rich on stderr."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
            console=Console(file=stream), transient=True, disable=not stream.isatty())
        self._tasks: dict[str, int] = {}

    def show(self, doing: str, done: float | None) -> None:
        """`doing` is `done` (0 to 1); None: nobody knows how long it takes."""
        if doing not in self._tasks:
            for task in self._tasks.values():
                self._progress.update(_id(task), total=1.0, completed=1.0)
            self._tasks[doing] = int(self._progress.add_task(doing, total=None))
        if done is not None:
            self._progress.update(_id(self._tasks[doing]), total=1.0, completed=done)

    def __enter__(self) -> "ProgressLine":
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._progress.stop()


def _id(number: int):  # type: ignore[no-untyped-def]  # rich's TaskID is an int with a name
    from rich.progress import TaskID

    return TaskID(number)
