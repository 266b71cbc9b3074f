"""Why a gradient may be missing, read in the source of what is in reach: without a ledger, the second-best answer.

In reach are the forward methods of the modules around the tensor, what these call, and the functions on the caller's
stack with the files they stand in. :class:`~.program_slices.ProgramSlice` follows the value through each. Nothing is
run, and nothing that is told here has been seen running.
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

from ....program_files import is_installed_file, is_library_file
from ...records.naming import tables_of
from ...records.records import Location
from ...source.call_sites import fields_of, line_of
from ...source.frame_variables import variables_of
from ...source.source_syntax import FUNCTIONS, last_name, syntax_of, syntax_tree
from .detaching_calls import FREEZING, SWITCHING, WEAK, detaching_call, dotted, freezing, switched_off
from .forward_functions import ModulePath, SourceFunction, around, behind, forward_of, places_of, reached
from .no_grad_reasons import Reason, Suspect

__all__ = ["SourceInReach", "assigned_at", "freezers", "switches"]

# Through these methods a module reaches all of its children, whatever they are called.
_ALL_CHILDREN = {"__dict__", "_modules", "_parameters", "children", "modules", "named_children", "named_modules"}


class _CallerFrame(NamedTuple):
    """A function on the caller's stack, and the variables that it sees."""

    code: CodeType
    variables: dict[str, Any]
    globals: dict[str, Any]


class _SourceFindings(NamedTuple):
    """What was read: the functions, nearest first, what cuts in them on the way of the value, and what elsewhere."""

    functions: list[SourceFunction]
    cuts: list[Suspect]
    elsewhere: list[Suspect]


class SourceInReach:
    """The source in reach of a call.

    Parameters
    ----------
    frames : sequence of frame
        The user's, innermost first.
    """

    def __init__(self, frames: Sequence[FrameType], loss: Any) -> None:
        ours = [frame for frame in frames if not is_installed_file(frame.f_code.co_filename)]
        self._frames = [_CallerFrame(f.f_code, {**f.f_globals, **variables_of(f)}, f.f_globals) for f in ours]
        self._loss = loss
        self._known: dict[Any, _SourceFindings] = {}

    def suspects(self, tensor: Any, root: Any = None, path: str = "", *, watched: bool = False) -> tuple[Suspect, ...]:
        """Return the lines that may cut `tensor` off from the loss, the most plausible first.

        Parameters
        ----------
        root : Module, optional
            The outermost module that the tensor is a parameter of.
        path : str
            Its path there.
        watched : bool
            Whether a ledger has seen the operators: what may cut elsewhere is then known not to have.

        Returns
        -------
        tuple of Suspect
            Functions near the tensor come first; masks, counts and casts come last.
        """
        places = places_of(root, path)
        names = self._names_of(tensor) | {f"{m}.{place.rest}" for place in places[:1] for m in self._names_of(root)}
        read = self._read(tensor, places)
        cuts = read.cuts or ([] if watched else read.elsewhere)
        found = [*_rebinding(read.functions, places, names), *cuts]
        found = list(_unused(read.functions, places)) or found
        best: dict[tuple[str, int], Suspect] = {}
        for suspect in found:
            best.setdefault((suspect.location.filename, suspect.location.lineno), suspect)
        return tuple(best.values())

    def origins(self, tensor: Any) -> tuple[Suspect, ...]:
        """Return the lines on the stack that may have made `tensor` without its history."""
        names = self._names_of(tensor)
        found: dict[int, Suspect] = {}
        for function in self._on_stack(tensor, ()):
            for targets, value, lineno in function.assignments:
                cuts = [] if names.isdisjoint(targets) else [detaching_call(part) for part in ast.walk(value)]
                for cut in sorted(filter(None, cuts), key=lambda cut: cut.weight)[:1]:
                    found.setdefault(lineno, function.suspect(cut.reason, cut.text, lineno))
        return tuple(found.values())

    def _read(self, tensor: Any, places: Sequence[ModulePath]) -> _SourceFindings:
        """Read what is in reach; once for all parameters that a model uses by the same names."""
        ways = [(type(place.module), place.attribute) for place in places if forward_of(place.module) is not None]
        key = (*(id(place.module) for place in places[:1]), *ways, *sorted(self._names_of(tensor)))
        if key not in self._known:
            near = [*around(places), *self._on_stack(tensor, places)]
            further = [list(behind(places, near)), list(self._in_files(tensor, places))]
            found = [cuts for functions in (near, *further) if (cuts := _cuts(reached(functions)))]
            cuts, elsewhere = (found[0], []) if found else ([], _cuts_elsewhere(near))
            self._known[key] = _SourceFindings([*near, *itertools.chain(*further)], cuts, elsewhere)
        return self._known[key]

    def _names_of(self, thing: Any) -> set[str]:
        return {name for frame in self._frames for name in _holders(frame.variables, thing)}

    def _on_stack(self, tensor: Any, places: Sequence[ModulePath]) -> Iterator[SourceFunction]:
        """Yield the functions on the stack, innermost first."""
        root = places[0].module if places else None
        for frame in self._frames:
            node = syntax_of(frame.code)
            if node is None:
                continue
            models = _holders(frame.variables, root)
            yield SourceFunction(
                frame.code.co_filename,
                frame.code.co_qualname,
                node,
                frozenset(models | _holders(frame.variables, tensor)),
                _beside(models, places),
                frozenset(_holders(frame.variables, self._loss)),
                frame.globals,
                on_stack=True,
            )

    def _in_files(self, tensor: Any, places: Sequence[ModulePath]) -> Iterator[SourceFunction]:
        """Yield all functions of the files on the stack; as a rule, names mean the same in them as on the stack."""
        if not places:
            return
        models = self._names_of(places[0].module)
        # What is `trainer.model` here is `self.model` in the methods of its class.
        models |= {f"self.{name.partition('.')[2]}" for name in models if "." in name}
        names, beside = frozenset(models | self._names_of(tensor)), _beside(models, places)
        for filename, scope in {frame.code.co_filename: frame.globals for frame in self._frames}.items():
            tree = syntax_tree(filename)
            for node in () if tree is None else ast.walk(tree):
                if isinstance(node, FUNCTIONS) and node.name != "__init__":
                    yield SourceFunction(filename, node.name, node, names, beside, globals=scope)


def _holders(variables: dict[str, Any], thing: Any) -> set[str]:
    """Return the variables that hold an object, also those that have it as an attribute: ``'self.model'``."""
    if thing is None:
        return set()
    found = set()
    for name, value in variables.items():
        if value is thing:
            found.add(name)
        elif not issubclass(type(value), (type, ModuleType, FunctionType)):
            found.update(f"{name}.{attribute}" for attribute, held in fields_of(value).items() if held is thing)
    return found


def _beside(models: set[str], places: Sequence[ModulePath]) -> frozenset[str]:
    """Return the other children of a module, which do not hold what one of them holds."""
    if not places:
        return frozenset()
    root, used, _ = places[0]
    parameters, children = tables_of(root)
    return frozenset(f"{model}.{name}" for model in models for name in {*parameters, *children} - {used})


def switches(frames: Sequence[FrameType] = ()) -> tuple[Suspect, ...]:
    """Return the lines of the program that turn recording off for all that follows.

    Parameters
    ----------
    frames : sequence of frame
        Their files are read too, besides those of imported modules.
    """
    return tuple(
        Suspect(Reason.NO_GRAD, "turns recording off for all that follows", line_of(filename, lineno))
        for filename, tree in _program(frames, SWITCHING)
        for lineno in switched_off(tree)
    )


def freezers(frames: Sequence[FrameType] = ()) -> tuple[Suspect, ...]:
    """Return the lines of the program that set requires_grad to something else than True.

    Parameters
    ----------
    frames : sequence of frame
        Their files are read too, besides those of imported modules.
    """
    return tuple(
        Suspect(Reason.FROZEN, "sets requires_grad", line_of(filename, lineno))
        for filename, tree in _program(frames, FREEZING)
        for lineno in freezing(tree)
    )


def assigned_at(attribute: str, frames: Sequence[FrameType] = ()) -> tuple[Location, ...]:
    """Return the lines of the program that assign to an attribute of a name, whatever it is an attribute of.

    Parameters
    ----------
    frames : sequence of frame
        Their files are read too, besides those of imported modules.
    """
    return tuple(
        line_of(filename, node.lineno)
        for filename, tree in _program(frames, re.compile(rf"\.{attribute}\b.*="))
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AugAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Attribute) and target.attr == attribute
    )


def _program(frames: Sequence[FrameType], mention: re.Pattern[str]) -> Iterator[tuple[str, ast.AST]]:
    """Yield the files of the program in which something is found, those that run first, and what is written in them."""
    running = dict.fromkeys(frame.f_code.co_filename for frame in frames)
    modules = {vars(module).get("__file__") for module in list(sys.modules.values()) if type(module) is ModuleType}
    others = sorted(file for file in modules if type(file) is str and file not in running)
    for filename in (*running, *others):
        tree = None if _is_foreign(filename) else syntax_tree(filename, mention)
        if tree is not None:
            yield filename, tree


def _is_foreign(filename: str) -> bool:
    return is_library_file(filename) or is_installed_file(filename)


# --- what is found ---


def _cuts(functions: Sequence[SourceFunction]) -> list[Suspect]:
    """Return what cuts on the way of the value; counts, masks and casts only where there is nothing else."""
    found: list[tuple[tuple[bool, bool, int, bool, int, int], Suspect]] = []
    for order, function in enumerate(functions):
        for cut, lineno, replaces in function.slice.detaching_lines():
            rank = (cut.weight >= WEAK, function.installed, order, not replaces, cut.weight, lineno)
            found.append((rank, function.suspect(cut.reason, cut.text, lineno)))
    found.sort(key=lambda entry: entry[0])
    return [suspect for (weak, *_), suspect in found if not weak or found[0][0][0]]


def _cuts_elsewhere(functions: Sequence[SourceFunction]) -> list[Suspect]:
    """Return what cuts in the user's own functions, where no way of the value could be followed to a cut."""
    found = []
    for function in functions:
        for node in () if function.installed else function.nodes:
            cut = detaching_call(node)
            if cut is not None and not cut.weight:
                text = f"{cut.text}; whether it is on the way could not be read"
                found.append(function.suspect(cut.reason, text, node.lineno))
    return found


def _rebinding(functions: Sequence[SourceFunction], places: Sequence[ModulePath], names: set[str]) -> Iterator[Suspect]:
    """Yield the lines that put another tensor in this one's place: ``model.w = Parameter(...)``, ``w = w.detach()``."""
    for function in functions:
        inside = {f"self.{place.rest}" for place in places if type(place.module) is function.owner}
        for targets, value, lineno in function.assignments:
            for target in targets & (inside | names):
                again = function.on_stack and target in set(map(dotted, ast.walk(value)))
                if again or "." in target:
                    text = f"gives `{target}` another tensor; a loss computed before does not know it"
                    yield function.suspect(Reason.REBOUND, text, lineno)


def _unused(functions: Sequence[SourceFunction], places: Sequence[ModulePath]) -> Iterator[Suspect]:
    """Yield the class that does not name the child, or the parameter, through which the tensor would be used."""
    for module, attribute, _ in places:
        own = [function for function in functions if function.owner is type(module)]
        inside = [node for function in own for node in function.nodes]
        named = {node.attr for node in inside if isinstance(node, ast.Attribute)}
        named |= {node.value for node in inside if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        dynamic = any(isinstance(node, ast.Name) and node.id == "getattr" for node in inside)
        if not own or dynamic or attribute in named or named & _ALL_CHILDREN:
            continue
        others = [function for function in functions if function.owner is not type(module)]
        if not any(attribute in _uses(function) for function in others):
            text = f"{type(module).__qualname__} does not name `{attribute}` outside of __init__()"
            yield own[0].suspect(Reason.UNUSED_MODULE, text, own[0].node.lineno)


def _uses(function: SourceFunction) -> set[str]:
    """Return the attributes that a function calls or computes with; to print one, or to ask about it, is no use."""
    used: set[str] = set()
    for node in function.nodes:
        if isinstance(node, ast.Call):
            used.update(dotted(node.func).split(".")[:-1], [last_name(node.func)])
        elif isinstance(node, (ast.BinOp, ast.Return)):
            used.update(part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute))
    return used
