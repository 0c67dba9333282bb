"""The hooks use no name of vLLM's that the table does not have checked, and the table no other.

A name that is also one of ours, torch's or Python's is not seen here.
"""

from pathlib import Path
from textwrap import dedent

from tests.contract.names import accessed, defined, in_table, mentioned, of_libraries
from tests.contract.synthetic import needs
from vcachediag.engine.capability_table import CAPABILITIES

PACKAGE = Path(__file__).resolve().parents[2] / "vcachediag"
ENGINE = PACKAGE / "engine"
#: What runs inside vLLM and reads its objects.
INSIDE = [*sorted((ENGINE / "hooks").glob("*.py")), ENGINE / "observer.py"]


def _texts(paths: list[Path]) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in paths]


def test_every_name_that_a_hook_reads_is_in_the_table() -> None:
    """An attribute of vLLM's that a hook uses is looked up in every release."""
    inside = _texts(INSIDE)
    used = set().union(*map(accessed, inside))
    ours = set().union(*map(defined, _texts([*PACKAGE.rglob("*.py")])))
    ours |= {path.stem for path in PACKAGE.rglob("*.py")}

    unknown = sorted(used - ours - of_libraries(inside) - in_table(CAPABILITIES))
    assert [] == unknown, f"in no entry of the table: {', '.join(unknown)}"


def test_every_attribute_of_the_table_is_used() -> None:
    """`holds` names nothing that the engine does not read: no gap without a meaning."""
    engine = [path for path in ENGINE.rglob("*.py") if path.name != "capability_table.py"]
    used = set().union(*map(mentioned, _texts(engine)))
    held = {name for one in CAPABILITIES for word in one.holds for name in word.split("|")}

    unused = sorted(held - used)
    assert [] == unused, f"held by the table, but read nowhere: {', '.join(unused)}"


def test_uses_are_seen() -> None:
    """Dots, `getattr` with a literal and patterns are uses; a variable name is none."""
    source = dedent("""
        def see(output):
            output.a.b = getattr(output, "c", None) or hasattr(output, "d")
            getattr(output, name)
            match output:
                case Output(e=1):
                    call(f=1, g="h")
    """)

    assert set("abcde") == accessed(source)
    assert set("abcdefgh") == mentioned(source)


def test_only_what_is_ours_counts_as_ours() -> None:
    """What a patch sets on an object of vLLM's does not become ours by that."""
    source = dedent("""
        LIMIT = 1
        class Row:
            field: int
            def install(self, runner):
                self.own = 1
                local = 1
                def schedule(self):
                    self.foreign = runner.foreign = 1
        def see(self):
            self.foreign = 1
    """)

    assert {"LIMIT", "Row", "field", "install", "own", "schedule", "see"} == defined(source)


def test_names_of_libraries_are_those_of_what_is_imported() -> None:
    """Tensors, arrays, builtins and imported parts of Python are known, vLLM's words are not."""
    known = of_libraries(["import threading\nfrom pathlib import Path", "from vllm import x"])

    assert {"append", "topk", "astype", "register_forward_hook", "acquire", "read_text"} <= known
    assert set() == known & {"block_pool", "req_ids", "get_computed_blocks", "popleft"}


def test_the_table_vouches_for_all_its_words() -> None:
    """Alternatives, parameters, and each part of each place."""
    table = [needs("vllm.a:Pool.touch", "vllm.b:Old", takes=("x",), holds=("c|d",))]

    assert {"Pool", "touch", "Old", "x", "c", "d"} == in_table(table)
