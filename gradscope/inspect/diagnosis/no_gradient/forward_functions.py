"""The functions that a parameter's value may go through: forward methods, what they call, and their syntax.

They are found as they were written: by looking into classes and modules, without asking an attribute of an object.
Methods are taken to call their first argument ``self``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from ....program_files import is_installed_file, is_library_file
from ...records.naming import tables_of
from ...source.call_sites import fields_of, line_of
from ...source.source_syntax import FUNCTIONS, syntax_of
from .detaching_calls import dotted, is_quiet
from .no_grad_reasons import Reason, Suspect
from .program_slices import PassedCall, ProgramSlice

__all__ = ["ModulePath", "SourceFunction", "around", "behind", "forward_of", "places_of", "reached"]

# Enough to read a large model's own code; more is not read for the sake of a guess.
_MOST_FUNCTIONS = 200
_MOST_WRAPPERS = 20


class ModulePath(NamedTuple):
    """A module that a parameter is in; by which attribute, and by which attributes down to the parameter."""

    module: Any
    attribute: str
    rest: str


@dataclass(eq=False)
class SourceFunction:
    """A function to read, or a file outside of its functions; and which names hold the value where it begins.

    Attributes
    ----------
    carried, beside, ends : frozenset of str
        As :class:`ProgramSlice` takes them.
    globals : dict
        Where the names of other functions are looked up.
    owner : type or None
        The class of the module whose method it is.
    on_stack : bool
        Whether it runs, so that its variables are known and not guessed.
    """

    filename: str
    name: str
    node: Any
    carried: frozenset[str]
    beside: frozenset[str] = frozenset()
    ends: frozenset[str] = frozenset()
    globals: dict[str, Any] = field(default_factory=dict)
    owner: type | None = None
    on_stack: bool = False

    @property
    def key(self) -> tuple[int, frozenset[str]]:
        """What tells it apart: another way into a function may cut another value off."""
        return id(self.node), self.carried

    @property
    def installed(self) -> bool:
        """Whether it is a package's, so less likely the place of an error."""
        return is_installed_file(self.filename)

    @cached_property
    def slice(self) -> ProgramSlice:
        """How the value goes through it."""
        quiet = self.node.lineno if is_quiet(getattr(self.node, "decorator_list", ())) else 0
        return ProgramSlice(self._body(), self.carried, beside=self.beside, ends=self.ends, quiet=quiet)

    @cached_property
    def nodes(self) -> list[Any]:
        """The syntax of its statements."""
        return [node for statement in self._body() for node in ast.walk(statement)]

    @cached_property
    def assignments(self) -> list[tuple[set[str], ast.expr, int]]:
        """What is assigned, the value, and on which line."""
        found = [node for node in self.nodes if isinstance(node, ast.Assign)]
        return [(set(map(dotted, node.targets)), node.value, node.lineno) for node in found]

    def _body(self) -> list[ast.stmt]:
        """Return its statements; of a file those that are in no function or class, which are read by themselves."""
        if isinstance(self.node, FUNCTIONS):
            return self.node.body
        return [statement for statement in self.node.body if not isinstance(statement, (*FUNCTIONS, ast.ClassDef))]

    def suspect(self, reason: Reason, text: str, lineno: int) -> Suspect:
        """Return a line of it as a suspect."""
        return Suspect(reason, text, line_of(self.filename, lineno, self.name))


def places_of(root: Any, path: str) -> list[ModulePath]:
    """Return the modules that a parameter is in, outermost first.

    Parameters
    ----------
    path : str
        The parameter's.

    Returns
    -------
    list of ModulePath
        Empty without a module.
    """
    parts = [] if root is None else path.split(".")
    places, module = [], root
    for depth, attribute in enumerate(parts):
        places.append(ModulePath(module, attribute, ".".join(parts[depth:])))
        module = tables_of(module)[1].get(attribute)
    return places


def around(places: Sequence[ModulePath]) -> Iterator[SourceFunction]:
    """Yield the methods of the modules that a parameter is in, innermost first."""
    for place in reversed(places):
        yield from _methods(place.module, place.attribute)


def behind(places: Sequence[ModulePath], known: Sequence[SourceFunction]) -> Iterator[SourceFunction]:
    """Yield the forward of the model's other modules, whose arguments may be computed with the parameter.

    Parameters
    ----------
    known : sequence of SourceFunction
        Left out.
    """
    seen = {id(function.node) for function in known}
    for module in _modules_below(places[0].module) if places else ():
        forward = forward_of(module)
        function = None if forward is None else _function(forward, type(module))
        if function is not None and id(function.node) not in seen:
            seen.add(id(function.node))
            yield replace(function, carried=frozenset(_arguments(function)))


def _methods(module: Any, attribute: str) -> list[SourceFunction]:
    """Return a module's forward and the methods it comes to, with what holds a child's or a parameter's value."""
    kind, forward = type(module), forward_of(module)
    carried = frozenset([f"self.{attribute}"])
    first = None if forward is None else _function(forward, kind, carried)
    found = {} if first is None else {"forward": first}
    waiting = list(found.values())
    while waiting:
        for name in {node.attr for node in waiting.pop().nodes if isinstance(node, ast.Attribute)} - found.keys():
            method = _method(kind, name)
            function = None if method is None else _function(method, kind, carried)
            if function is not None:
                found[name] = function
                waiting.append(function)
    # A method that returns the value hands it to those that call it.
    giving = {f"self.{name}" for name, function in found.items() if function.slice.delivers and name != "forward"}
    return [replace(function, carried=carried | giving) for function in found.values()]


def _modules_below(root: Any) -> list[Any]:
    found, stack = {id(root): root}, [root]
    while stack:
        for child in tables_of(stack.pop())[1].values():
            if child is not None and id(child) not in found:
                found[id(child)] = child
                stack.append(child)
    return list(found.values())


def forward_of(module: Any) -> FunctionType | None:
    """Return the forward of a module as it was written; None for a framework's."""
    own = fields_of(module).get("forward")
    return _method(type(module), "forward") if own is None else _plain(own)


def _method(kind: type, name: str) -> FunctionType | None:
    return _plain(next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None))


def _plain(thing: Any) -> FunctionType | None:
    """Return the function inside methods and ``functools.wraps`` wrappers, unless it is a framework's."""
    for _ in range(_MOST_WRAPPERS):
        if type(thing) in (MethodType, staticmethod, classmethod):
            thing = thing.__func__
        elif type(thing) is FunctionType and "__wrapped__" in thing.__dict__:
            thing = thing.__dict__["__wrapped__"]
        else:
            break
    return thing if type(thing) is FunctionType and not is_library_file(thing.__code__.co_filename) else None


def _function(
    function: FunctionType, owner: type | None, carried: frozenset[str] = frozenset()
) -> SourceFunction | None:
    code = function.__code__
    node = syntax_of(code)
    if not isinstance(node, FUNCTIONS):
        return None
    return SourceFunction(code.co_filename, code.co_qualname, node, carried, globals=function.__globals__, owner=owner)


def reached(first: Sequence[SourceFunction]) -> list[SourceFunction]:
    """Return functions, each followed by those that it hands the value to."""
    found: dict[Any, SourceFunction] = {}
    stack = list(reversed(first))
    while stack and len(found) < _MOST_FUNCTIONS:
        function = stack.pop()
        if function.key in found:
            continue
        found[function.key] = function
        for passed in function.slice.passed():
            called = _called(function, passed)
            if called is not None and called.carried:
                stack.append(called)
    return list(found.values())


def _called(function: SourceFunction, passed: PassedCall) -> SourceFunction | None:
    """Return the function that is called, if it can be told, with those of its arguments that hold the value."""
    first, _, rest = passed.called.partition(".")
    thing, owner = function.globals.get(first), None
    if first == "self" and function.owner is not None and rest.isidentifier():
        thing, owner = _method(function.owner, rest), function.owner
    elif type(thing) is ModuleType and rest.isidentifier():
        thing = vars(thing).get(rest)
    plain = _plain(thing)
    called = None if plain is None else _function(plain, owner)
    return None if called is None else replace(called, carried=_taken(called, passed))


def _arguments(function: SourceFunction) -> list[str]:
    arguments = function.node.args
    return [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)][function.owner is not None :]


def _taken(function: SourceFunction, passed: PassedCall) -> frozenset[str]:
    arguments, rest = _arguments(function), function.node.args.vararg
    names = {arguments[i] for i in passed.places if i < len(arguments)} | set(passed.keywords)
    if rest is not None and any(i >= len(arguments) for i in passed.places):
        names.add(rest.arg)
    return frozenset(names)
