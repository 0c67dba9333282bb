"""Loads the user's plugin, in every process of vLLM, and knows which classes are its own.

A spec is one of: the name of an installed `vllm.general_plugins` entry point;
`module:function`; a `.py` file or a package folder with `register()`; a project folder whose
`pyproject.toml` declares such an entry point.
"""

import difflib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcachediag.engine import capabilities
from vcachediag.errors import LoadError

GROUP = "vllm.general_plugins"
#: Carries the specs into vLLM's other processes, as a JSON list.
ENVIRONMENT = "VCACHEDIAG_PLUGINS"


@dataclass(frozen=True, kw_only=True)
class LoadedPlugin:
    """A plugin whose register function has run."""

    spec: str
    #: Architecture -> `module:Class` that the plugin registered for it.
    classes: dict[str, str]


_loaded: dict[str, LoadedPlugin] = {}


def export(specs: tuple[str, ...]) -> None:
    """Make vLLM's other processes load `specs`, and ours among the allowed plugins."""
    os.environ[ENVIRONMENT] = json.dumps(specs)
    allowed = os.environ.get("VLLM_PLUGINS")
    if allowed is not None and "vcachediag" not in allowed.split(","):
        os.environ["VLLM_PLUGINS"] = f"{allowed},vcachediag"


def exported() -> tuple[str, ...]:
    """The specs that `export` left for this process; empty outside our runs."""
    return tuple(json.loads(os.environ.get(ENVIRONMENT, "[]")))


def load(spec: str) -> LoadedPlugin:
    """Load and register one plugin; a second call gives the first one's result.

    Raises:
        LoadError: it cannot be found, raises, or registers no model.
    """
    if spec not in _loaded:
        function = _find(spec)
        classes: dict[str, str] = {}
        with _watching(classes):
            try:
                function()
            except (Exception, SystemExit) as error:
                raise _raised(spec, function.__name__, error) from error
        if not classes:
            raise LoadError(
                f"plugin `{spec}` registers no model",
                cause=f"{function.__module__}:{function.__name__} made no call of "
                      "ModelRegistry.register_model",
                hint="name the function that registers your model: --plugin module:function")
        _loaded[spec] = LoadedPlugin(spec=spec, classes=classes)
        _keep(classes)
    return _loaded[spec]


def _find(spec: str) -> Callable[[], object]:
    path = Path(spec)
    if spec.endswith(".py") or path.is_dir():
        return _from_path(spec, path.resolve())
    if ":" in spec:
        return _from_reference(spec, spec)
    entries = {entry.name: entry for entry in importlib.metadata.entry_points(group=GROUP)}
    if spec in entries:
        return _from_reference(spec, entries[spec].value)
    near = difflib.get_close_matches(spec, entries, n=1)
    names = ", ".join(f"`{name}`" for name in sorted(entries) if name != "vcachediag")
    raise LoadError(
        f"plugin `{spec}` is not installed",
        cause=f"the entry points of {GROUP} here: {names or 'none'}",
        hint=f"did you mean `{near[0]}`?" if near else
             "pip install it next to vLLM, or give a .py file, a folder or module:function")


def _from_path(spec: str, path: Path) -> Callable[[], object]:
    if not path.exists():
        raise LoadError(f"plugin `{spec}` does not exist", cause=f"no such file: {path}")
    if path.is_file():
        _extend_path(path.parent)
        return _register_of(spec, _import_file(spec, path))
    project = path / "pyproject.toml"
    if project.exists():
        return _from_project(spec, project)
    if (path / "__init__.py").exists():
        _extend_path(path.parent)
        return _from_reference(spec, f"{path.name}:register")
    raise LoadError(f"plugin folder `{spec}` holds neither pyproject.toml nor __init__.py",
                    hint="give the project folder, the package folder or a .py file")


def _from_project(spec: str, project: Path) -> Callable[[], object]:
    try:
        data = tomllib.loads(project.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LoadError(f"plugin `{spec}`: cannot read pyproject.toml", cause=str(error)) from error
    entries = data.get("project", {}).get("entry-points", {}).get(GROUP, {})
    if not entries:
        raise LoadError(f"plugin `{spec}`: its pyproject.toml declares no `{GROUP}` entry point",
                        hint=f'add [project.entry-points."{GROUP}"]')
    for folder in (project.parent / "src", project.parent):
        if folder.is_dir():
            _extend_path(folder)
    functions = [_from_reference(spec, value) for value in entries.values()]

    def register() -> None:
        for function in functions:
            function()

    return register


def _from_reference(spec: str, reference: str) -> Callable[[], object]:
    module_name, _, attribute = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise _raised(spec, f"import {module_name}", error) from error
    return _register_of(spec, module, attribute or "register")


def _register_of(spec: str, module: Any, name: str = "register") -> Callable[[], object]:
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise LoadError(f"plugin `{spec}` has no function `{name}`",
                        cause=f"looked in {getattr(module, '__file__', module.__name__)}",
                        hint="vLLM calls a function of the plugin that registers its models")
    return found  # type: ignore[no-any-return]  # any callable will do


def _import_file(spec: str, path: Path) -> Any:
    name = path.stem
    known = sys.modules.get(name)
    if known is not None:
        if getattr(known, "__file__", None) == str(path):
            return known
        raise LoadError(f"plugin `{spec}`: the module name `{name}` is taken",
                        cause=f"by {getattr(known, '__file__', 'a built-in module')}",
                        hint="rename the file")
    description = importlib.util.spec_from_file_location(name, path)
    assert description is not None
    assert description.loader is not None
    module = importlib.util.module_from_spec(description)
    # Registered before it runs, as `import` does: vLLM may import it by name.
    sys.modules[name] = module
    try:
        description.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _raised(spec, f"import {path.name}", error) from error
    return module


def _extend_path(folder: Path) -> None:
    # At the end: a plugin's `random.py` must not stand in for the library's.
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _raised(spec: str, what: str, error: BaseException) -> LoadError:
    hint = None
    if isinstance(error, ModuleNotFoundError) and error.name:
        hint = f"install it next to vLLM: `pip install {error.name.partition('.')[0]}`"
    return LoadError(f"cannot load plugin `{spec}`",
                     cause=f"{what} raised {type(error).__name__}: {error}", hint=hint)


class _watching:  # noqa: N801  # reads as a verb in `with`
    """Notes which classes are registered while it is entered."""

    def __init__(self, classes: dict[str, str]) -> None:
        self._classes = classes
        self._registry = type(capabilities.find("ModelRegistry"))

    def __enter__(self) -> None:
        self._original = self._registry.register_model
        original, classes = self._original, self._classes

        def register_model(registry: Any, model_arch: str, model_cls: Any) -> Any:
            classes[model_arch] = class_reference(model_cls)
            return original(registry, model_arch, model_cls)

        self._registry.register_model = register_model

    def __exit__(self, *_: object) -> None:
        self._registry.register_model = self._original


def _keep(classes: dict[str, str]) -> None:
    """A plugin named by the user wins over installed ones that register the same names later."""
    registry = type(capabilities.find("ModelRegistry"))
    original = registry.register_model

    def register_model(self: Any, model_arch: str, model_cls: Any) -> Any:
        if classes.get(model_arch, class_reference(model_cls)) != class_reference(model_cls):
            return None
        return original(self, model_arch, model_cls)

    registry.register_model = register_model


def class_reference(model_cls: Any) -> str:
    """`module:Class` of a class, or the string itself: plugins register either."""
    if isinstance(model_cls, str):
        return model_cls
    return f"{model_cls.__module__}:{model_cls.__qualname__}"
