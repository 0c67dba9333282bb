"""Where a report goes: terminal, pipe, log in another encoding."""

import io
import os

import pytest

from vcachediag.report import print_report, render_text
from vcachediag.report.console import report_width

from .builders import trace, verdict
from .scenarios import diverged, hostile


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True

    def fileno(self) -> int:
        """Some descriptor; the tests say how wide it is."""
        return 1


class Pipe(Terminal):
    """A stream with a descriptor that is no terminal."""

    def isatty(self) -> bool:
        """No."""
        return False


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine that runs the tests decides on colour or width."""
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((100, 40)))


def printed(stream: io.StringIO) -> str:
    """What `print_report` writes for the never-stopping run."""
    print_report(diverged(), trace(), stream=stream)
    return stream.getvalue()


def test_pipe_gets_plain_text_at_80_columns() -> None:
    """A pipe gets 80 columns and no styles, whatever the terminal around it is."""
    assert render_text(diverged(), trace(), width=80).plain == printed(Pipe())


def test_columns_sets_the_width_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """`COLUMNS` decides where there is no terminal."""
    monkeypatch.setenv("COLUMNS", "120")

    assert render_text(diverged(), trace(), width=120).plain == printed(Pipe())


def test_terminal_gets_its_width_and_colour() -> None:
    """A terminal is asked for its width, and the status is coloured."""
    written = printed(Terminal())

    expected = 100
    assert expected == report_width(Terminal())
    assert written.startswith("\x1b[1;31mDIVERGED")


def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    """`NO_COLOR` leaves no colour on a terminal."""
    monkeypatch.setenv("NO_COLOR", "1")

    written = printed(Terminal())

    assert "\x1b[1mDIVERGED" in written
    assert "31m" not in written


def test_width_that_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that does not answer counts as 80 columns; a senseless COLUMNS is ignored."""
    def fail(_: int) -> os.terminal_size:
        raise OSError

    monkeypatch.setattr(os, "get_terminal_size", fail)
    monkeypatch.setenv("COLUMNS", "wide")

    expected = 80
    assert expected == report_width(Terminal())


def test_log_in_another_encoding() -> None:
    """Letters that the stream cannot hold become escapes instead of an exception."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", newline="\n")

    print_report(hostile(), trace(), stream=stream)
    stream.flush()

    assert rb"instead of \u6f22\u5b57" in raw.getvalue()


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a stream the report goes to standard output, and nothing to standard error."""
    print_report(verdict(), trace(), brief=True)

    captured = capsys.readouterr()
    assert (render_text(verdict(), trace(), width=80, brief=True).plain, "") == captured
