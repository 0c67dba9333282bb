"""Reads one module's source into facts."""

import ast
from collections.abc import Iterable, Iterator

from tests.contract.facts import Class, Definition, Function, Link, Module, Value

_Statements = Iterable[ast.stmt]
_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def read_module(source: str, name: str, *, package: bool) -> Module:
    """The facts of the module `name`; `package`: it is an `__init__.py`."""
    parent = name if package else name.rpartition(".")[0]
    statements = list(_executed(ast.parse(source).body))
    definitions: dict[str, Definition] = {}
    stars: list[str] = []
    for statement in statements:
        if isinstance(statement, ast.ImportFrom):
            module = _absolute(statement, parent)
            for alias in statement.names:
                if alias.name == "*":
                    stars.append(module)
                else:
                    definitions[alias.asname or alias.name] = Link(module=module, name=alias.name)
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                definitions[alias.asname or whole] = Link(module=whole, name=None)
        else:
            definitions.update(_defined(statement, name))
    if "__getattr__" in definitions:
        definitions = _lazy(statements, parent) | definitions
    return Module(name=name, definitions=definitions, stars=tuple(stars))


def _executed(statements: _Statements) -> Iterator[ast.stmt]:
    """The statements that run at import, those of blocks too; what a block prefers comes last."""
    for statement in statements:
        if isinstance(statement, ast.If):
            if not _is_type_checking(statement.test):
                yield from _executed(statement.orelse)
                yield from _executed(statement.body)
            else:
                yield from _executed(statement.orelse)
        elif isinstance(statement, ast.Try):
            for handler in statement.handlers:
                yield from _executed(handler.body)
            yield from _executed([*statement.body, *statement.orelse, *statement.finalbody])
        elif isinstance(statement, ast.With | ast.For | ast.While):
            yield from _executed(statement.body)
        else:
            yield statement


def _is_type_checking(test: ast.expr) -> bool:
    return _dotted(test).rpartition(".")[2] == "TYPE_CHECKING"


def _absolute(statement: ast.ImportFrom, parent: str) -> str:
    if not statement.level:
        return statement.module or ""
    parts = parent.split(".")
    base = parts[:len(parts) - statement.level + 1]
    return ".".join([*base, statement.module] if statement.module else base)


def _defined(statement: ast.stmt, module: str) -> dict[str, Definition]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return {statement.name: _function(statement, bound=False)}
        case ast.ClassDef():
            return {statement.name: read_class(statement)}
        case ast.Assign():
            value = _value(statement.value, module)
            return {name: value if isinstance(target, ast.Name) else Value()
                    for target in statement.targets for name in _names(target)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            # Without a value too: vLLM sets some of these later, such as `NONE_HASH`.
            return {name: _value(statement.value, module)}
    return {}


def _value(value: ast.expr | None, module: str) -> Definition:
    if isinstance(value, ast.Name):
        return Link(module=module, name=value.id)
    if isinstance(value, ast.Call):
        return Value(made_by=_dotted(value.func))
    return Value()


def _names(target: ast.expr) -> list[str]:
    return [node.id for node in ast.walk(target)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def _lazy(statements: _Statements, parent: str) -> dict[str, Definition]:
    """What a module's `__getattr__` may give: the keys of the dictionaries beside it.

    A value such as `.engine.arg_utils:EngineArgs`, or the module alone, says where it is from.
    """
    found: dict[str, Definition] = {}
    for statement in statements:
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        for key, item in zip(value.keys, value.values, strict=True) \
                if isinstance(value, ast.Dict) else ():
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                found[key.value] = _lazy_value(item, key.value, parent)
    return found


def _lazy_value(item: ast.expr, key: str, parent: str) -> Definition:
    if not (isinstance(item, ast.Constant) and isinstance(item.value, str) and "." in item.value):
        return Value()
    module, _, name = item.value.partition(":")
    return Link(module=parent + module if module.startswith(".") else module, name=name or key)


def _function(node: _FunctionNode, *, bound: bool) -> Function:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    if bound and not _decorated_with(node, "staticmethod"):
        positional = positional[1:]
    return Function(parameters=tuple(one.arg for one in [*positional, *arguments.kwonlyargs]),
                    any_keyword=arguments.kwarg is not None)


def _decorated_with(node: _FunctionNode, name: str) -> bool:
    return any(_dotted(one) == name for one in node.decorator_list)


def read_class(node: ast.ClassDef) -> Class:
    """The facts of one class."""
    fields: dict[str, None] = {}
    attributes: set[str] = set()
    methods: dict[str, Function] = {}
    for statement in _executed(node.body):
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                methods[statement.name] = _function(statement, bound=True)
                attributes |= _set_on_self(statement)
            case ast.AnnAssign(target=ast.Name(id=name)) if _in_constructor(statement):
                fields[name] = None
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.ClassDef(name=name):
                attributes.add(name)
            case ast.Assign():
                attributes |= {name for target in statement.targets for name in _names(target)}
                attributes |= _slots(statement)
    return Class(
        bases=tuple(filter(None, map(_dotted, node.bases))), fields=tuple(fields),
        attributes=tuple(sorted(attributes - set(fields) - set(methods))), methods=methods,
        decorated=bool(node.decorator_list))


def _in_constructor(statement: ast.AnnAssign) -> bool:
    if _dotted(statement.annotation).rpartition(".")[2] == "ClassVar":
        return False
    keywords = statement.value.keywords if isinstance(statement.value, ast.Call) else []
    return not any(one.arg == "init" and isinstance(one.value, ast.Constant)
                   and one.value.value is False for one in keywords)


def _slots(statement: ast.Assign) -> set[str]:
    if not any(isinstance(one, ast.Name) and one.id == "__slots__" for one in statement.targets):
        return set()
    return {one.value for one in ast.walk(statement.value)
            if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def _set_on_self(method: _FunctionNode) -> set[str]:
    """`self.x = ...` and `setattr(self, "x", ...)`, whatever `self` is called."""
    arguments = [*method.args.posonlyargs, *method.args.args]
    if not arguments or _decorated_with(method, "staticmethod"):
        return set()
    own = arguments[0].arg
    found = set()
    for node in _inside(method, own):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute, ctx=ast.Store()):
                found |= {attribute} if name == own else set()
            case ast.Call(args=[ast.Name(id=name), ast.Constant(value=str(attribute)), _]):
                sets = _dotted(node.func).rpartition(".")[2] in {"setattr", "__setattr__"}
                found |= {attribute} if name == own and sets else set()
    return found


def _inside(node: ast.AST, own: str) -> Iterator[ast.AST]:
    """All below `node`, but not the functions there that call something else `own`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and any(
                one.arg == own for one in ast.walk(child.args) if isinstance(one, ast.arg)):
            continue
        yield child
        yield from _inside(child, own)


def _dotted(node: ast.expr) -> str:
    """`a.b` of `a.b`, `a.b[...]` and `a.b(...)`; empty for anything else."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            owner = _dotted(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        case ast.Subscript():
            return _dotted(node.value)
        case ast.Call():
            return _dotted(node.func)
    return ""
