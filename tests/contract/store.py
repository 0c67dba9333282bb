"""Facts of a release: read from an unpacked tree, or from a file that keeps those we need."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.contract.check import look_everywhere
from tests.contract.extract import read_module
from tests.contract.facts import (
    Class,
    Definition,
    Function,
    Link,
    Module,
    Source,
    Unread,
    Value,
)
from vcachediag.engine.capability_table import Capability


class NotIndexedError(LookupError):
    """The committed facts do not tell, since the table has grown."""

    def __init__(self, release: str, what: str) -> None:
        super().__init__(f"{what} is not in the index of vLLM {release}: run make contract-index")


class Tree:
    """The modules of an unpacked release below `root`, the folder that holds `vllm/`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: dict[str, Module | None] = {}

    def module(self, name: str) -> Module | None:
        """The module, or None if this release has none of that name."""
        if name not in self._read:
            self._read[name] = self._parse(name)
        return self._read[name]

    def definition(self, module: Module, name: str) -> Definition | None:
        """What `name` is in `module`; None: the module has no such name."""
        return module.definitions.get(name)

    def _parse(self, name: str) -> Module | None:
        path = self._root.joinpath(*name.split("."))
        for file, package in ((path / "__init__.py", True), (path.with_suffix(".py"), False)):
            if file.is_file():
                return read_module(file.read_text(encoding="utf-8"), name, package=package)
        return None


@dataclass(frozen=True, kw_only=True)
class Index:
    """The modules that the table needs, and the names of those that this release lacks."""

    release: str
    modules: Mapping[str, Module] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()

    def module(self, name: str) -> Module | None:
        """The module, or None if this release has none of that name.

        Raises:
            NotIndexedError: The index knows neither.
        """
        if name in self.modules:
            return self.modules[name]
        if name in self.absent:
            return None
        raise NotIndexedError(self.release, name)

    def definition(self, module: Module, name: str) -> Definition | None:
        """What `name` is in `module`; None: the module has no such name.

        Raises:
            NotIndexedError: The index knows no more than the name.
        """
        definition = module.definitions.get(name)
        if isinstance(definition, Unread):
            raise NotIndexedError(self.release, f"{module.name}:{name}")
        return definition


class _Recording:
    """A source that remembers what it was asked."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.modules: dict[str, Module | None] = {}
        self.names: set[tuple[str, str]] = set()

    def module(self, name: str) -> Module | None:
        self.modules[name] = self._source.module(name)
        return self.modules[name]

    def definition(self, module: Module, name: str) -> Definition | None:
        self.names.add((module.name, name))
        return self._source.definition(module, name)


def build_index(release: str, source: Source, capabilities: Iterable[Capability]) -> Index:
    """What of `source` a check of the table asks for."""
    asked = _Recording(source)
    look_everywhere(capabilities, asked)
    return Index(
        release=release,
        modules={name: _without_details(module, asked.names)
                 for name, module in asked.modules.items() if module is not None},
        absent=frozenset(name for name, module in asked.modules.items() if module is None))


def _without_details(module: Module, asked: set[tuple[str, str]]) -> Module:
    """The module with no more than the names of what nobody asked for."""
    return replace(module, definitions={
        name: definition if (module.name, name) in asked else Unread()
        for name, definition in module.definitions.items()})


def dump(index: Index) -> str:
    """The index as JSON, one line per module."""
    modules = ",\n".join(f"{json.dumps(name)}:{_compact(_module_to_json(index.modules[name]))}"
                         for name in sorted(index.modules))
    return (f'{{"release":{json.dumps(index.release)},\n'
            f'"absent":{_compact(sorted(index.absent))},\n"modules":{{\n{modules}\n}}}}\n')


def load(text: str) -> Index:
    """The index that `dump` wrote."""
    data = json.loads(text)
    return Index(
        release=data["release"], absent=frozenset(data["absent"]),
        modules={name: _module_from_json(name, one) for name, one in data["modules"].items()})


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _module_to_json(module: Module) -> dict[str, Any]:
    kinds: dict[str, dict[str, Any]] = {}
    unread = []
    for name, definition in sorted(module.definitions.items()):
        match definition:
            case Class():
                kinds.setdefault("classes", {})[name] = _class_to_json(definition)
            case Function():
                kinds.setdefault("functions", {})[name] = _function_to_text(definition)
            case Link(module=target, name=other):
                kinds.setdefault("links", {})[name] = f"{target}:{other}" if other else target
            case Value(made_by=maker):
                kinds.setdefault("values", {})[name] = maker
            case Unread():
                unread.append(name)
    return {**kinds, **({"others": " ".join(unread)} if unread else {}),
            **({"stars": list(module.stars)} if module.stars else {})}


def _module_from_json(module: str, data: Mapping[str, Any]) -> Module:
    definitions: dict[str, Definition] = {
        name: Unread() for name in data.get("others", "").split()}
    for name, maker in data.get("values", {}).items():
        definitions[name] = Value(made_by=maker)
    for name, target in data.get("links", {}).items():
        place, _, other = target.partition(":")
        definitions[name] = Link(module=place, name=other or None)
    for name, text in data.get("functions", {}).items():
        definitions[name] = _function_from_text(text)
    for name, one in data.get("classes", {}).items():
        definitions[name] = _class_from_json(one)
    return Module(name=module, definitions=definitions, stars=tuple(data.get("stars", ())))


def _function_to_text(function: Function) -> str:
    return " ".join([*function.parameters, *(["**"] if function.any_keyword else [])])


def _function_from_text(text: str) -> Function:
    names = text.split()
    return Function(parameters=tuple(name for name in names if name != "**"),
                    any_keyword="**" in names)


def _class_to_json(one: Class) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "bases": " ".join(one.bases), "fields": " ".join(one.fields),
        "attributes": " ".join(one.attributes), "decorated": one.decorated,
        "methods": {name: _function_to_text(method) for name, method in one.methods.items()}}
    return {name: part for name, part in parts.items() if part}


def _class_from_json(data: Mapping[str, Any]) -> Class:
    return Class(
        bases=tuple(data.get("bases", "").split()), fields=tuple(data.get("fields", "").split()),
        attributes=tuple(data.get("attributes", "").split()),
        methods={name: _function_from_text(text)
                 for name, text in data.get("methods", {}).items()},
        decorated=data.get("decorated", False))
