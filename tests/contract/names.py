"""Which attribute names our own code uses, and which of them can only be vLLM's."""

import ast
import builtins
import importlib
import inspect
import sys
import types
from collections.abc import Iterable

from tests.contract.extract import read_class
from vcachediag.engine.capability_table import Capability

_BY_NAME = {"delattr", "getattr", "hasattr", "setattr"}


def accessed(source: str) -> set[str]:
    """Names after a dot, and literal names given to `getattr` and its like."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr=name):
                found.add(name)
            case ast.Call(func=ast.Name(id=function), args=[_, ast.Constant(value=str(name)), *_]):
                found |= {name} if function in _BY_NAME else set()
            case ast.MatchClass(kwd_attrs=names):
                found |= set(names)
    return found


def mentioned(source: str) -> set[str]:
    """Names after a dot, names of arguments, and all strings: any of these may be a use."""
    tree = ast.parse(source)
    return accessed(source) | {
        node.value for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    } | {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}


def defined(source: str) -> set[str]:
    """Functions, classes, variables of the module, and all members of its classes."""
    tree = ast.parse(source)
    found = {name for statement in tree.body if isinstance(statement, ast.Assign | ast.AnnAssign)
             for name in _targets(statement)}
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name):
                found |= {name} | read_class(node).members()
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
    return found


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[str]:
    return [node.id for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def of_libraries(sources: Iterable[str]) -> set[str]:
    """Attributes of builtin types, of torch's and numpy's, and of what is imported of Python's."""
    found = {name for one in [*vars(builtins).values(), *vars(types).values()]
             if inspect.isclass(one) for name in dir(one)}
    for module, classes in (("torch", ("Tensor", "device", "dtype", "nn.Module")),
                            ("numpy", ("ndarray", "generic"))):
        found |= set(dir(importlib.import_module(module)))
        for path in classes:
            found |= set(dir(_attribute(importlib.import_module(module), path)))
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            found |= _of_import(node)
    return found


def _attribute(owner: object, path: str) -> object:
    for name in path.split("."):
        owner = getattr(owner, name)
    return owner


def _of_import(node: ast.AST) -> set[str]:
    """What an import of a module of Python's own brings: its names and its classes' members."""
    found: set[str] = set()
    match node:
        case ast.Import(names=names):
            for alias in names:
                if alias.name.partition(".")[0] in sys.stdlib_module_names:
                    module = importlib.import_module(alias.name)
                    found |= set(dir(module))
                    for given, one in inspect.getmembers(module, inspect.isclass):
                        found |= set() if given.startswith("_") else set(dir(one))
        case ast.ImportFrom(module=str(name), names=names, level=0):
            if name.partition(".")[0] in sys.stdlib_module_names:
                for alias in names:
                    found |= set(dir(getattr(importlib.import_module(name), alias.name)))
    return found


def in_table(capabilities: Iterable[Capability]) -> set[str]:
    """Every name that the table vouches for."""
    found: set[str] = set()
    for capability in capabilities:
        for word in (*capability.holds, *capability.takes):
            found |= set(word.split("|"))
        for place in capability.places:
            found |= set(place.partition(":")[2].split("."))
    return found
