"""A module as a function of its parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...runtime.tensor.tensor import Tensor
from ..modules.module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in the place of its parameters and buffers.

    Parameters
    ----------
    parameter_and_buffer_dicts : dict or sequence of dict
        By dotted name; what they do not name is the module's own. A buffer that the module replaces is replaced there.
    args : tuple or object, optional
        Of the call; what is no tuple is its one argument.
    tie_weights : bool
        Whether a tensor takes the place of all names under which its parameter is known.
    strict : bool
        Whether all parameters and buffers have to be named, and no others.

    Raises
    ------
    RuntimeError
        If `strict` and the names are not the module's.
    ValueError
        If a name, or one tied to it, is given twice.

    See Also
    --------
    stack_module_state, grad

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.Linear(2, 1)
    >>> given = {"weight": gs.tensor([[1.0, 2.0]]), "bias": gs.tensor([3.0])}
    >>> functional_call(layer, given, gs.ones(2))
    tensor([6.])
    """
    given = _merged(parameter_and_buffer_dicts)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with _in_place_of(module, given, tie_weights, strict):
        return module(*positional, **({} if kwargs is None else kwargs))


def _merged(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence) or not all(isinstance(part, dict) for part in dicts):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    names = [name for part in dicts for name in part]
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(
            f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous\n"
            "Give each name once."
        )
    return {name: value for part in dicts for name, value in part.items()}


@contextmanager
def _in_place_of(module: Module, given: dict[str, Any], tie_weights: bool, strict: bool) -> Iterator[None]:
    own = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    if strict:
        _check_names(module, given, own)
    for value in given.values():
        if not isinstance(value, Tensor):
            raise TypeError(f"{value} is not an instance of gradscope.Tensor")
    swapped = _with_ties(given, own) if tie_weights else dict(given)
    before: list[tuple[str, dict[str, Any], str, Any]] = []
    try:
        for path, value in swapped.items():
            table, name = _place(module, path)
            if table is not None:
                before.append((path, table, name, table[name]))
                table[name] = value
        yield
    finally:
        for path, table, name, value in reversed(before):
            if path in given and name in table:
                given[path] = table[name]
            table[name] = value


def _place(module: Module, path: str) -> tuple[dict[str, Any] | None, str]:
    """Return the table in which a parameter, a buffer or another tensor of a module stands, and its name there."""
    folder, _, name = path.rpartition(".")
    holder = module.get_submodule(folder)
    for table in (holder._parameters, holder._buffers):
        if name in table:
            return table, name
    if name not in holder.__dict__:
        return None, name
    value = holder.__dict__[name]
    if value is not None and not isinstance(value, Tensor):
        raise TypeError(f"attribute `{name}`: {value} is not an instance of gradscope.Tensor\nLeave {path!r} away.")
    return holder.__dict__, name


def _check_names(module: Module, given: dict[str, Any], own: dict[str, Any]) -> None:
    unexpected = [name for name in given if name not in own]
    tied = {id(own[name]) for name in given if name in own}
    missing = [name for name, tensor in own.items() if name not in given and id(tensor) not in tied]
    lines = []
    for kind, names in (("Unexpected", unexpected), ("Missing", missing)):
        if names:
            lines.append(f"\n\t{kind} key(s): {', '.join(map(repr, sorted(names)))}.")
    if lines:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:{''.join(lines)}")


def _with_ties(given: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return the tensors under all names under which the module has the parameter that they replace."""
    names: dict[int, list[str]] = {}
    for name, tensor in own.items():
        names.setdefault(id(tensor), []).append(name)
    result = dict(given)
    for group in names.values():
        here = [name for name in group if name in given]
        if len({id(given[name]) for name in here}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {here}, which are tied. Consider using tie_weights=False"
            )
        for name in group if here else ():
            result[name] = given[here[0]]
    return result
