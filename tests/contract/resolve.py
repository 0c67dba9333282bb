"""Follows a place of the table through imports, aliases and base classes to a definition."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.contract.facts import Class, Function, Link, Module, Source, Value

#: Bases outside vLLM that generate a constructor from annotated fields.
PYDANTIC = {"BaseModel", "RootModel"}
GENERATORS = PYDANTIC | {"NamedTuple", "Struct", "TypedDict"}


@dataclass(frozen=True, kw_only=True)
class Found:
    """A definition, and the module whose names it is written in."""

    module: str
    definition: Function | Class | Value | Module


@dataclass(frozen=True, kw_only=True)
class Outside:
    """Something that vLLM has from elsewhere, so that its sources do not tell what it is."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Something that is not there."""

    why: str


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """A class and all that it inherits from, in the order in which names are looked up."""

    classes: tuple[Found, ...]
    #: Names of base classes that are not vLLM's.
    outside: tuple[str, ...]

    def own(self) -> Iterator[Class]:
        """The classes' facts."""
        for found in self.classes:
            if isinstance(found.definition, Class):
                yield found.definition

    def members(self) -> set[str]:
        """All names that an instance has, as far as vLLM's sources tell."""
        return {name for one in self.own() for name in one.members()}


def find_place(source: Source, place: str) -> Found | Outside | Gap:
    """What `module:name.name` is in this release."""
    module, _, path = place.partition(":")
    if source.module(module) is None:
        return Gap(why=f"no module {module}")
    first, *rest = path.split(".")
    found = find_name(source, module, first)
    if found is None:
        return Gap(why=f"no {first} in {module}")
    owner = first
    for name in rest:
        found = _member(source, found, name)
        if found is None:
            return Gap(why=f"no {name} in {owner} of {module}")
        owner = f"{owner}.{name}"
    return found


def find_name(source: Source, module: str, name: str,
              _seen: frozenset[tuple[str, str]] = frozenset()) -> Found | Outside | None:
    """What `name` in `module` stands for; None: nothing."""
    if not _is_ours(module):
        return Outside(name=f"{module}:{name}")
    facts = source.module(module)
    if facts is None or (module, name) in _seen:
        return None
    seen = _seen | {(module, name)}
    definition = source.definition(facts, name)
    if isinstance(definition, Link):
        return _follow(source, definition, seen)
    if isinstance(definition, Function | Class | Value):
        return Found(module=module, definition=definition)
    for star in facts.stars:
        # What a star import takes from elsewhere is unknown, so it is no proof of the name.
        if _is_ours(star) and (found := find_name(source, star, name, seen)):
            return found
    return None


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "vllm"


def _follow(source: Source, link: Link,
            seen: frozenset[tuple[str, str]]) -> Found | Outside | None:
    if link.name is None:
        return _whole(source, link.module)
    found = find_name(source, link.module, link.name, seen)
    # `from package import module`.
    return found or _whole(source, f"{link.module}.{link.name}")


def _whole(source: Source, module: str) -> Found | Outside | None:
    if not _is_ours(module):
        return Outside(name=module)
    facts = source.module(module)
    return None if facts is None else Found(module=module, definition=facts)


def lineage(source: Source, found: Found) -> Lineage:
    """All that the class `found` consists of."""
    classes: list[Found] = []
    outside: list[str] = []

    def add(one: Found) -> None:
        if one in classes or not isinstance(one.definition, Class):
            return
        classes.append(one)
        for base in one.definition.bases:
            match find_dotted(source, one.module, base):
                case Found() as parent:
                    add(parent)
                case Outside(name=name):
                    outside.append(name)
                case None:
                    # A builtin, or a name made in a way that is not understood.
                    outside.append(base)

    add(found)
    return Lineage(classes=tuple(classes), outside=tuple(outside))


def find_dotted(source: Source, module: str, dotted: str) -> Found | Outside | None:
    """What `a.b` means where it is written in `module`."""
    first, *rest = dotted.split(".")
    found = find_name(source, module, first)
    for name in rest:
        if found is None:
            return None
        found = _member(source, found, name)
    return found


def _member(source: Source, owner: Found | Outside, name: str) -> Found | Outside | None:
    if isinstance(owner, Outside):
        return Outside(name=f"{owner.name}.{name}")
    if isinstance(owner.definition, Module):
        return (find_name(source, owner.module, name)
                or _whole(source, f"{owner.module}.{name}"))
    family = instance_lineage(source, owner)
    for one in family.classes if family else ():
        if isinstance(one.definition, Class) and name in one.definition.members():
            return Found(module=one.module,
                         definition=one.definition.methods.get(name, Value()))
    return None


def instance_lineage(source: Source, found: Found) -> Lineage | None:
    """The lineage of a class, or of the class of a module's variable `name = Class(...)`."""
    if isinstance(found.definition, Class):
        return lineage(source, found)
    if isinstance(found.definition, Value) and found.definition.made_by:
        made_by = find_dotted(source, found.module, found.definition.made_by)
        if isinstance(made_by, Found) and isinstance(made_by.definition, Class):
            return lineage(source, made_by)
    return None
