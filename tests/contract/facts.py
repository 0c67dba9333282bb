"""What is known of vLLM's sources: modules and what they define, read without importing them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function or method."""

    #: Without `self` or `cls`, and without `*args`.
    parameters: tuple[str, ...]
    #: It has `**kwargs`.
    any_keyword: bool = False


@dataclass(frozen=True, kw_only=True)
class Class:
    """A class, without what it inherits."""

    #: As written, without subscripts: `nn.Module`.
    bases: tuple[str, ...] = ()
    #: Annotated in the class's body; parameters of a generated constructor.
    fields: tuple[str, ...] = ()
    #: Everything else an instance has: class variables, slots, nested classes, `self.x = ...`.
    attributes: tuple[str, ...] = ()
    #: Properties too.
    methods: Mapping[str, Function] = field(default_factory=dict)
    #: A decorator may generate the constructor, as that of a dataclass does.
    decorated: bool = False

    def members(self) -> set[str]:
        """All names that its instances have from this class itself."""
        return {*self.fields, *self.attributes, *self.methods}


@dataclass(frozen=True, kw_only=True)
class Link:
    """A name that stands for something defined elsewhere: an import or an alias."""

    module: str
    #: None: the module itself.
    name: str | None


@dataclass(frozen=True, kw_only=True)
class Value:
    """A variable of a module, or an attribute of a class."""

    #: `X` for `name = X(...)`; empty where it is something else.
    made_by: str = ""


@dataclass(frozen=True, kw_only=True)
class Unread:
    """Something of which an index keeps the name only."""


Definition = Function | Class | Link | Value | Unread


@dataclass(frozen=True, kw_only=True)
class Module:
    """What one module defines at its top level."""

    name: str
    definitions: Mapping[str, Definition] = field(default_factory=dict)
    #: Modules of `from module import *`.
    stars: tuple[str, ...] = ()


class Source(Protocol):
    """The modules of one release."""

    def module(self, name: str) -> Module | None:
        """The module, or None if this release has none of that name."""

    def definition(self, module: Module, name: str) -> Definition | None:
        """What `name` is in a module of this source; None: the module has no such name."""
