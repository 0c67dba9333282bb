"""What `make contract` prints and returns."""

from pathlib import Path

import pytest

from tests.contract import __main__ as command
from tests.contract.check import Outcome
from tests.contract.matrix import Column, as_markdown, as_text, broken_promises
from tests.contract.releases import RELEASES, Release

LONG = "SamplingParams.a_name_that_is_longer_than_the_column_of_names_of_the_matrix_is_wide"


def _outcome(name: str, place: int | None, *gaps: str, optional: bool = False,
             lost: str = "") -> Outcome:
    return Outcome(name=name, optional=optional, place=place, gaps=gaps, lost=lost)


COLUMNS = (
    Column(release=Release(version="0.10.2", supported=False),
           outcomes=(_outcome("LLM", None, "no module vllm.new", "no module vllm.old"),
                     _outcome(LONG, 1), _outcome("Pool", None, "no module vllm.pool",
                                                 optional=True, lost="pools"))),
    Column(release=Release(version="0.30.0", supported=True, live="yes"),
           outcomes=(_outcome("LLM", 0, "vllm.new:LLM takes no model"),
                     _outcome(LONG, 0), _outcome("Pool", 2, optional=True))),
)


def test_the_matrix_is_readable_as_a_whole() -> None:
    """Rows, columns, marks, legend and reasons, with a long name on a line of its own."""
    assert [
        "vLLM 0.".ljust(74) + " 10 30",
        " " * 74 + " .2 .0",
        "supported".ljust(74) + "     *",
        "LLM".ljust(74) + "  !  !",
        LONG,
        " " * 74 + "  2  1",
        "Pool".ljust(74) + "  -  3",
        "",
        "1 2 3  there, at the first, second, third of the table's places",
        "-      missing or different, and optional: done otherwise, or not observed",
        "!      missing or different, and needed",
        "*      a release that is supported: no `!` may be in its column",
        "",
        "LLM in 0.10.2",
        "  no module vllm.new",
        "  no module vllm.old",
        "",
        "LLM in 0.30.0",
        "  vllm.new:LLM takes no model",
        "",
        "Pool in 0.10.2",
        "  no module vllm.pool",
    ] == as_text(COLUMNS).splitlines()


def test_the_real_matrix_fits_a_terminal() -> None:
    """With all releases, no line but a very long name is wider than 80 columns."""
    lines = as_text([command.column(release) for release in RELEASES]).splitlines()

    assert [] == [line for line in lines if len(line) > 80]


def test_only_a_needed_gap_in_a_supported_release_breaks_a_promise() -> None:
    """Optional gaps, and gaps of releases that nobody claims, are shown but are no failure."""
    assert ["0.30.0  LLM: vllm.new:LLM takes no model"] == broken_promises(COLUMNS)


def test_the_readme_table_has_a_row_per_release() -> None:
    """Newest first, with what was checked, what was run, and what is lost there."""
    assert [
        "| vLLM | supported | names and signatures there | run live | not seen there |",
        "|---|---|---|---|---|",
        "| 0.30.0 | yes | 2 of 3 | yes | `LLM` |",
        "| 0.10.2 | no | 1 of 3 | no | `LLM`, pools |",
    ] == as_markdown(COLUMNS).splitlines()


@pytest.fixture
def one_release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The command with one supported release, whose sources are an empty vLLM."""
    monkeypatch.setattr(command, "RELEASES", (Release(version="0.1.0", supported=True),))
    monkeypatch.setattr(command, "INDEXES", tmp_path / "kept")
    monkeypatch.setattr(Release, "index", property(
        lambda release: tmp_path / "kept" / f"{release.version}.json"))
    package = tmp_path / "sources" / "vllm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(command, "fetch", lambda _release, _cache: tmp_path / "sources")
    return tmp_path


def test_a_gap_in_a_supported_release_is_exit_code_1(
        one_release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A vLLM that lacks everything is told on stderr, entry by entry, and by the exit code."""
    code = command.main(["--write"])
    output = capsys.readouterr()

    assert 1 == code
    assert "error: 0.1.0  ModelRegistry: no ModelRegistry in vllm\n" in output.err
    assert (one_release / "kept" / "0.1.0.json").is_file()


def test_facts_that_are_not_current_are_exit_code_1(
        one_release: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    """Committed facts that differ from the sources are named, with the command that helps."""
    monkeypatch.setattr(command, "CAPABILITIES", command.CAPABILITIES[:1])
    command.main(["--write"])
    monkeypatch.setattr(command, "broken_promises", lambda _columns: [])
    capsys.readouterr()

    assert 0 == command.main([])
    kept = one_release / "kept" / "0.1.0.json"
    kept.write_text(kept.read_text().replace('"absent":[', '"absent":["vllm.x",'))
    assert 1 == command.main([])
    assert "0.1.0.json is not what the sources say: run make contract-index" in (
        capsys.readouterr().err)


def test_a_table_that_has_grown_is_exit_code_1(
        one_release: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    """Offline, facts that do not suffice end in an error that says so, and not in a matrix."""
    table = command.CAPABILITIES
    monkeypatch.setattr(command, "CAPABILITIES", table[:1])
    command.main(["--write"])
    monkeypatch.setattr(command, "CAPABILITIES", table)
    capsys.readouterr()

    assert 1 == command.main(["--offline"])
    output = capsys.readouterr()
    assert "" == output.out
    assert "run make contract-index" in output.err
    assert one_release.is_dir()


def test_the_readme_has_the_table_of_today() -> None:
    """What the README says of each release is what the committed facts say."""
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text()
    columns = [command.column(release) for release in RELEASES]

    assert f"<!-- versions -->\n{as_markdown(columns)}<!-- versions -->\n" in readme
