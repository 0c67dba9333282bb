"""Compares the table of what we touch in vLLM with the facts of one release."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.contract.facts import Class, Function, Source
from tests.contract.resolve import (
    GENERATORS,
    PYDANTIC,
    Found,
    Gap,
    Lineage,
    Outside,
    find_place,
    instance_lineage,
)
from vcachediag.engine.capability_table import Capability


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one release has of one capability."""

    name: str
    optional: bool
    #: Index of the place where it is, as `find` takes it: the first that exists.
    place: int | None
    #: What is missing; empty: all is there.
    gaps: tuple[str, ...]
    #: What is not observed where it is missing.
    lost: str = ""

    @property
    def ok(self) -> bool:
        """Everything that we need of it is there."""
        return not self.gaps


def check_all(capabilities: Iterable[Capability], source: Source) -> tuple[Outcome, ...]:
    """What this release has of the whole table."""
    return tuple(check(capability, source) for capability in capabilities)


def check(capability: Capability, source: Source) -> Outcome:
    """What this release has of one capability."""
    gaps: list[str] = []
    for number, place in enumerate(capability.places):
        found = find_place(source, place)
        if isinstance(found, Gap):
            gaps.append(found.why)
            continue
        return Outcome(name=capability.name, optional=capability.optional,
                       lost=capability.lost, place=number,
                       gaps=tuple(_differences(capability, place, found, source)))
    return Outcome(name=capability.name, optional=capability.optional, lost=capability.lost,
                   place=None, gaps=tuple(gaps))


def look_everywhere(capabilities: Iterable[Capability], source: Source) -> None:
    """Ask `source` for every module that a check could need, whatever it finds on the way."""
    for capability in capabilities:
        for place in capability.places:
            # On the way to a method its class and all that this inherits from are looked at.
            found = find_place(source, place)
            if isinstance(found, Found):
                instance_lineage(source, found)


def _differences(capability: Capability, place: str, found: Found | Outside,
                 source: Source) -> Iterator[str]:
    if not (capability.takes or capability.holds):
        return
    family = instance_lineage(source, found) if isinstance(found, Found) else None
    if capability.takes:
        accepted = _accepted(found, family)
        if accepted is None:
            yield f"the parameters of {place} cannot be read"
        else:
            yield from (f"{place} takes no {_words(name)}" for name in capability.takes
                        if not _has(name, accepted))
    if capability.holds:
        if family is None:
            yield f"{place} is no class, its attributes cannot be read"
        else:
            members = family.members()
            yield from (f"{place} has no attribute {_words(name)}" for name in capability.holds
                        if not set(name.split("|")) & members)


def _words(name: str) -> str:
    return name.replace("|", " or ")


def _has(name: str, function: Function) -> bool:
    return function.any_keyword or bool(set(name.split("|")) & set(function.parameters))


def _accepted(found: Found | Outside, family: Lineage | None) -> Function | None:
    """What a call of `found` takes; None: unknown."""
    if isinstance(found, Found) and isinstance(found.definition, Function):
        return found.definition
    if isinstance(found, Found) and isinstance(found.definition, Class) and family is not None:
        return _constructor(family)
    return None


def _constructor(family: Lineage) -> Function | None:
    """The constructor as written, or as generated from the fields."""
    outside = {name.rpartition(":")[2].rpartition(".")[2] for name in family.outside}
    generated = bool(outside & GENERATORS)
    for one in family.own():
        if "__init__" in one.methods:
            return one.methods["__init__"]
        if generated or (one.decorated and one.fields):
            # Base classes that generate nothing give no parameters.
            return Function(parameters=tuple(
                name for parent in family.own() if generated or parent.decorated
                for name in parent.fields
                # Pydantic's private attributes.
                if not (outside & PYDANTIC and name.startswith("_"))))
    for one in family.own():
        if "__new__" in one.methods:
            return one.methods["__new__"]
    return None if family.outside else Function(parameters=())
