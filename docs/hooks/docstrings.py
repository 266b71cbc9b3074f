"""A Griffe extension: docstrings as they are read in Python become docstrings as Markdown shows them.

References such as ``:func:`name``` become links where the reference has a place for the name, and code where it has
none. Functions and methods that type stubs name get the docstrings of the functions that the declarations made.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import griffe

import gradscope

ROLE = re.compile(r":(?P<kind>attr|class|data|exc|func|meth|mod):`(?P<short>~?)(?P<target>[^`]+)`")
SEE_ALSO = re.compile(r"^See Also\n-{3,}\n(?P<entries>(?:.+\n?)+)", re.MULTILINE)
SCHEMA = re.compile(r"^\w+\([^\n]*\)\n\n")
INTERFACE = "gradscope.runtime.ops.interface"


class MarkdownDocstrings(griffe.Extension):
    """Completes what a package's source does not tell by itself, and rewrites every docstring."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        """Add the names that the imported package has and its source does not show."""
        if pkg.name != "gradscope":
            return
        methods = griffe.Alias("TensorMethods", f"{INTERFACE}.TensorMethods")
        pkg["runtime.tensor.tensor"].set_member("TensorMethods", methods)
        dir(gradscope)  # which loads all names
        for name, value in vars(gradscope).items():
            if name not in pkg.members and isinstance(value, gradscope.dtype):
                pkg.set_member(
                    name, griffe.Attribute(name, docstring=griffe.Docstring(f"Another name of ``{value}``."))
                )
        # The hook that lists the pages has imported every package that has one.
        for name, imported in list(sys.modules.items()):
            if name.startswith("gradscope.") and hasattr(imported, "__all__"):
                _complete(pkg[name.removeprefix("gradscope.")], imported)

    def on_object(self, *, obj: griffe.Object, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        """Rewrite the docstring of `obj`."""
        if obj.docstring is None and obj.is_function and obj.filepath.suffix == ".pyi":
            documented = inspect.getdoc(value_at(obj.path)) or ""
            obj.docstring = griffe.Docstring(SCHEMA.sub("", documented), parent=obj)
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value, obj)


def value_at(path: str) -> Any:
    """Return the object at a path, which may be that of a type stub."""
    path = path.replace(f"{INTERFACE}.TensorMethods", "gradscope.Tensor").replace(INTERFACE, "gradscope")
    owner, _, name = path.rpartition(".")
    if owner == "gradscope.Tensor":
        return getattr(gradscope.Tensor, name, None)
    return getattr(import_module(owner), name, None)


def _complete(module: griffe.Module, imported: ModuleType) -> None:
    for name in imported.__all__:
        value = getattr(imported, name)
        if name not in module.members and inspect.isclass(value):
            module.set_member(name, griffe.Alias(name, f"{value.__module__}.{value.__qualname__}"))
        elif inspect.isroutine(value) and name in module.members and module.members[name].is_attribute:
            module.set_member(name, _function(name, value))


def _function(name: str, value: Callable[..., Any]) -> griffe.Function:
    """Return the description of a function that the source of its module gets by assignment."""
    parameters = [
        griffe.Parameter(
            parameter.name,
            kind=griffe.ParameterKind(parameter.kind.description),
            annotation=None if parameter.annotation is parameter.empty else str(parameter.annotation),
            default=None if parameter.default is parameter.empty else repr(parameter.default),
        )
        for parameter in inspect.signature(value).parameters.values()
    ]
    function = griffe.Function(name, parameters=griffe.Parameters(*parameters))
    function.docstring = griffe.Docstring(inspect.getdoc(value) or "", parent=function)
    return function


def as_markdown(text: str, scope: griffe.Object) -> str:
    """Return a docstring with Markdown's links instead of Sphinx' roles, and "See Also" as a list."""
    text = SEE_ALSO.sub(_list_of_links, text.replace(" : path-like\n", " : os.PathLike\n"))  # a minus to a parser
    return ROLE.sub(lambda match: _link(match, scope), text)


def _list_of_links(match: re.Match[str]) -> str:
    entries = []
    for line in match["entries"].splitlines():
        names, _, description = line.partition(" : ")
        links = ", ".join(f":func:`{name.strip()}`" for name in names.split(","))
        entries.append(f"- {links}: {description}" if description else f"- {links}")
    return "See Also\n--------\n" + "\n".join(entries) + "\n"


def _link(match: re.Match[str], scope: griffe.Object) -> str:
    target = match["target"]
    shown = target.rpartition(".")[2] if match["short"] else target.lstrip(".")
    called = "()" if match["kind"] in ("func", "meth") else ""
    return f'<autoref identifier="{identifier_of(target, scope)}" optional><code>{shown}{called}</code></autoref>'


def identifier_of(target: str, scope: griffe.Object) -> str:
    """Return the path that a name means in the docstring of `scope`."""
    if target.startswith("."):
        module = scope.module
        return f"{module.path if module.is_init_module else module.parent.path}{target}"
    try:
        found = scope.resolve(target)
    except griffe.NameResolutionError:
        found = target
    name = target.rpartition(".")[2]
    if found == target and "." in target and _from_gradscope(target):
        return f"gradscope.{target}"
    if (found == target or found.startswith("gradscope.runtime.ops.")) and hasattr(gradscope, name):
        return f"gradscope.{name}"
    return found


def _from_gradscope(target: str) -> bool:
    """Whether a dotted name can be followed from the package, as ``linalg.norm`` can and ``numpy.linalg.norm`` not."""
    place: Any = gradscope
    for part in target.split("."):
        place = getattr(place, part, None)
    return place is not None
