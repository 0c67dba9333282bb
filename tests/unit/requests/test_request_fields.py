"""The tables of names, against each other and against vLLM's own."""

import ast
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from vcachediag.requests import fields


def test_no_name_is_in_two_tables() -> None:
    """A name that two tables claim would be read twice, or read and reported as ignored."""
    tables = (
        fields.OWN, fields.BATCH, fields.SAMPLING, fields.CHAT_OPTIONS, fields.REFUSED,
        fields.WITHOUT_EFFECT,
    )

    counts = Counter(name for table in tables for name in table)

    assert [] == [name for name, count in counts.items() if count > 1]


@pytest.mark.parametrize(
    ("module", "record"),
    [
        ("entrypoints/openai/chat_completion/protocol.py", "ChatCompletionRequest"),
        ("entrypoints/openai/completion/protocol.py", "CompletionRequest"),
        ("sampling_params.py", "SamplingParams"),
    ],
)
def test_every_field_of_vllm_is_known(module: str, record: str) -> None:
    """A body that the installed vLLM accepts is never called a typing mistake."""
    spec = find_spec("vllm")  # finds it without importing it
    if spec is None or spec.origin is None:
        pytest.skip("vLLM is not installed")
    path = Path(spec.origin).parent / module
    if not path.is_file():
        pytest.skip(f"this vLLM has no {module}")

    tree = ast.parse(path.read_text())
    body = next(
        node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == record
    )
    names = {
        node.target.id
        for node in body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }

    assert "temperature" in names
    assert set() == {name for name in names if not name.startswith("_")} - fields.KNOWN
