"""Reading modules: every way in which a name, parameter or attribute comes to be there."""

from textwrap import dedent

import pytest

from tests.contract.extract import read_module
from tests.contract.facts import Class, Function, Link, Module, Value


def _read(source: str, *, name: str = "vllm.core.pool", package: bool = False) -> Module:
    return read_module(dedent(source), name, package=package)


def _class(source: str) -> Class:
    (found,) = (one for one in _read(source).definitions.values() if isinstance(one, Class))
    return found


@pytest.mark.parametrize(("source", "expected"), [
    ("def f(a, /, b, *args, c=1): ...", Function(parameters=("a", "b", "c"))),
    ("async def f(a, **kwargs): ...", Function(parameters=("a",), any_keyword=True)),
    ("f = 1", Value()),
    ("f: int", Value()),
    ("f, g = 1, 2", Value()),
    ("f = Registry({})", Value(made_by="Registry")),
    ("f: Registry = impl.Registry()", Value(made_by="impl.Registry")),
    ("f = g", Link(module="vllm.core.pool", name="g")),
    ("from vllm.other import f", Link(module="vllm.other", name="f")),
    ("from vllm.other import g as f", Link(module="vllm.other", name="g")),
    ("from . import f", Link(module="vllm.core", name="f")),
    ("from .other import f", Link(module="vllm.core.other", name="f")),
    ("from ..other import f", Link(module="vllm.other", name="f")),
    ("import vllm.f as f", Link(module="vllm.f", name=None)),
])
def test_a_top_level_name_is_what_it_stands_for(source: str, expected: object) -> None:
    """Functions, variables, aliases and imports are told apart, and lead to their origin."""
    assert expected == _read(source).definitions["f"]


def test_an_import_in_a_package_is_relative_to_itself() -> None:
    """`from .x` in `__init__.py` means a module of that package, not a sister of it."""
    read = _read("from .pool import f", name="vllm.core", package=True)

    assert Link(module="vllm.core.pool", name="f") == read.definitions["f"]


def test_a_name_for_type_checkers_only_is_not_there() -> None:
    """What is imported under TYPE_CHECKING does not exist at run time; its `else` branch does."""
    read = _read("""
        import typing
        if typing.TYPE_CHECKING:
            from vllm.other import f
        else:
            g = 1
        if TYPE_CHECKING:
            h = 1
    """)

    assert {"typing", "g"} == set(read.definitions)


def test_names_of_conditional_blocks_are_there_and_the_preferred_one_wins() -> None:
    """A fallback in `except` or `else` does not hide what a complete install has."""
    read = _read("""
        try:
            from vllm.fast import f
        except ImportError:
            f = None
            fallback = 1
        if HAS_TRITON:
            def g(a): ...
        else:
            g = None
        with quiet():
            h = 1
    """)

    assert Link(module="vllm.fast", name="f") == read.definitions["f"]
    assert Function(parameters=("a",)) == read.definitions["g"]
    assert {"f", "fallback", "g", "h"} == set(read.definitions)


def test_a_lazy_module_has_the_keys_of_its_tables() -> None:
    """Names given by a module's `__getattr__` lead to where they come from."""
    read = _read("""
        TABLE = {"LLM": ".entrypoints.llm:LLM", "Old": "vllm.old", "FLAG": lambda: 1}
        def __getattr__(name): ...
    """, name="vllm", package=True)

    assert Link(module="vllm.entrypoints.llm", name="LLM") == read.definitions["LLM"]
    assert Link(module="vllm.old", name="Old") == read.definitions["Old"]
    assert Value() == read.definitions["FLAG"]


def test_a_table_without_getattr_gives_no_names() -> None:
    """A dictionary alone makes no attributes of its keys."""
    assert {"TABLE"} == set(_read('TABLE = {"LLM": ".entrypoints.llm:LLM"}').definitions)


def test_star_imports_are_kept() -> None:
    """`from x import *` is followed later, from the right module."""
    assert ("vllm.core.other",) == _read("from .other import *").stars


def test_every_kind_of_attribute_is_seen() -> None:
    """Whatever instances have is a member, and only what they have."""
    read = _class("""
        class Pool(Base, Generic[T]):
            __slots__ = ("slot",)
            field: int
            variable = 1
            if FAST:
                conditional = 1
            class Nested: ...
            @property
            def prop(self): ...
            def __init__(this, given):
                this.a, (this.b, *this.c) = given
                this.d: int = 1
                this.e += 1
                with given as this.f:
                    pass
                for this.g in given:
                    pass
                def later():
                    this.h = 1
                setattr(this, "i", 1)
                compare(this, "foreign", 1)
                object.__setattr__(this, "j", 1)
                given.foreign = this.only_read
                def wrapper(this):
                    this.foreign = 1
            @staticmethod
            def make(other):
                other.foreign = 1
            async def run(self): ...
    """)

    assert {"__slots__", "slot", "field", "variable", "conditional", "Nested", "prop", "__init__",
            "make", "run", *"abcdefghij"} == read.members()
    assert ("Base", "Generic") == read.bases


def test_parameters_of_methods_are_without_self() -> None:
    """`self` and `cls` are nobody's to give; a static method's first parameter is."""
    read = _class("""
        class Pool:
            def take(self, count, *, group=0): ...
            @classmethod
            def make(cls, size, **rest): ...
            @staticmethod
            def hash(tokens): ...
    """)

    assert {"take": Function(parameters=("count", "group")),
            "make": Function(parameters=("size",), any_keyword=True),
            "hash": Function(parameters=("tokens",))} == read.methods


def test_fields_are_what_a_generated_constructor_takes() -> None:
    """Class variables and fields with `init=False` are attributes, but no parameters."""
    read = _class("""
        @dataclass
        class Config:
            size: int
            kind: ClassVar[str] = "x"
            resolved: int = field(init=False)
            other: list = field(default_factory=list)
    """)

    assert ("size", "other") == read.fields
    assert ("kind", "resolved") == read.attributes
    assert read.decorated
