"""``__torch_function__``: classes that have their say in what is called with their instances.

It is one of the things behind ``state.special``, which is up while there is an instance of a subclass of Tensor that
takes part, or while a mode is on; otherwise nothing is asked. A method of such an instance is overridden as a method, a
public function composed of operators as that function (:func:`overridable`), and every other call by the operators that
it is made of.
"""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from .. import dispatch as floors_above
from .. import state

if TYPE_CHECKING:
    from ..ops.declaration.registry import Operator

__all__ = [
    *("NONE", "asking", "call", "count", "disabled", "dispatch", "is_of_pytorch", "is_overridable"),
    *("of_operator", "overloaded", "overridable", "take_part", "type_shown"),
]

Function = TypeVar("Function", bound=Callable[..., Any])

NONE = object()
"""What :func:`dispatch` returns where nobody has a say."""


def _disabled(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Stand for ``__torch_function__`` of a class that has no say."""
    return NotImplemented


disabled: Any = _disabled


# --- who takes part ---------------------------------------------------------------------------------------------------


def has_say(kind: type) -> bool:
    """Whether a class takes part in calls with its instances."""
    method = getattr(kind, "__torch_function__", None)
    if method is None or method is disabled or kind is floors_above.tensor_type:
        return False
    return not any(map(is_of_pytorch, kind.__mro__))  # PyTorch's own tensors would call the function again, for ever


def is_of_pytorch(thing: Any) -> bool:
    """Whether a class or a function is PyTorch's.

    Examples
    --------
    >>> is_of_pytorch(int)
    False
    """
    owner = getattr(thing, "__objclass__", thing)  # of a method in C
    return str(getattr(owner, "__module__", "")).partition(".")[0] == "torch"


def type_shown(value: Any) -> str:
    """Return the name of a value's type; PyTorch's, of whose classes many have names of ours, with its package.

    Examples
    --------
    >>> type_shown([1])
    'list'
    """
    kind = type(value)
    return f"torch.{kind.__name__}" if is_of_pytorch(kind) else kind.__name__


def _leaves(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if type(value) in (list, tuple):
            yield from _leaves(value)
        else:
            yield value


def overloaded(values: Iterable[Any]) -> list[Any]:
    """Return one instance of each class that takes part, in the order in which they are asked: subclasses first."""
    found: list[Any] = []
    for value in _leaves(values):
        kind = type(value)
        if not has_say(kind) or any(type(other) is kind for other in found):
            continue
        place = next((at for at, other in enumerate(found) if issubclass(kind, type(other))), len(found))
        found.insert(place, value)
    return found


def count(instance: Any) -> Any:
    """Have calls look for overrides while `instance`, of a subclass that takes part, is alive; return it."""
    state.add_overriding(1)
    weakref.finalize(instance, state.add_overriding, -1).atexit = False
    return instance


# --- asking -----------------------------------------------------------------------------------------------------------


def dispatch(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], relevant: Iterable[Any] | None = None
) -> Any:
    """Return what modes and arguments (the `relevant` ones, or all) make of a call; NONE where none of them takes part.

    Raises
    ------
    TypeError
        If all that are asked return NotImplemented.
    """
    modes = state.local
    relevant = (*args, *kwargs.values()) if relevant is None else relevant
    asked = [] if modes.overrides_off else overloaded(relevant)
    if not asked and not modes.function_modes:
        return NONE
    types = tuple(map(type, asked))
    if modes.function_modes:
        result = _ask_mode(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for value in asked:
        result = type(value).__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = getattr(function, "__name__", repr(function))
    raise TypeError(
        f"no implementation found for 'gradscope.{name}' on types that implement __torch_function__: {list(types)}\n"
        "Return something else than NotImplemented from one of them."
    )


def _ask_mode(function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """Ask the innermost mode; while it runs, the one around it is the innermost."""
    modes = state.local
    whole = modes.function_modes
    modes.function_modes = whole[:-1]
    try:
        return whole[-1].__torch_function__(function, types, args, kwargs)
    finally:
        modes.function_modes = whole


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `function`, or what overrides it."""
    result = dispatch(function, args, kwargs)
    return function(*args, **kwargs) if result is NONE else result


def overridable(body: Function) -> Function:
    """Return a function composed of operators as one that is overridden itself, under its own name."""

    @functools.wraps(body)
    def function(*args: Any, **kwargs: Any) -> Any:
        if state.overriding:
            overridden = dispatch(function, args, kwargs)
            if overridden is not NONE:
                return overridden
        return body(*args, **kwargs)

    return asking(function)  # type: ignore[return-value]


def asking(function: Function) -> Function:
    """Note of a function that it asks who overrides it, before it does anything; return it."""
    _asking.add(function)
    return function


def is_overridable(function: Any) -> bool:
    """Return whether a function asks by itself who overrides it."""
    return function in _asking


_asking: set[Any] = set()


def of_operator(op: Operator, arguments: tuple[Any, ...], suffix: str = "") -> Any:
    """Return what overrides the call of an operator, or of its in-place form (`suffix` ``"_"``); NONE if nothing does.

    The function that is told is the public one of the operator's name, where that takes the same arguments.
    """
    if not state.local.function_modes and (state.local.overrides_off or not overloaded(arguments)):
        return NONE
    function, args, kwargs = _public_call(op, arguments, suffix)
    return dispatch(function, args, kwargs)


def _public_call(op: Operator, arguments: tuple[Any, ...], suffix: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    args = tuple(value for p, value in zip(op.parameters, arguments, strict=True) if not p.keyword_only)
    kwargs = {p.name: value for p, value in zip(op.parameters, arguments, strict=True) if p.keyword_only}
    own = op.inplace_function if suffix else op.function
    public = floors_above.PUBLIC.get(op.name.partition(".")[0] + suffix, own)
    return (public if _takes(public, len(args), tuple(kwargs)) else own), args, kwargs


@functools.cache
def _takes(function: Callable[..., Any], count: int, names: tuple[str, ...]) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count, **dict.fromkeys(names))
    except TypeError:
        return False
    return True


# --- subclasses of Tensor ---------------------------------------------------------------------------------------------


def take_part(kind: Any, root: Any) -> None:
    """Have a new subclass of Tensor, unless it is disabled, override the methods that it inherits from Tensor."""
    if not has_say(kind) or any(has_say(base) for base in kind.__mro__[1:]):
        return
    for name, method in _methods(root):
        if getattr(kind, name, None) is method:
            setattr(kind, name, _overridden(method))
    for name, attribute in _attributes(root):
        if getattr(kind, name) is attribute:
            setattr(kind, name, _told_of(root.grad if name == "_grad" else attribute))  # as in PyTorch
    wrap = kind._wrap.__func__
    kind._wrap = classmethod(lambda cls, *args: count(wrap(cls, *args)))


@functools.cache
def _methods(root: Any) -> list[tuple[str, Any]]:
    """Return Tensor's own methods under their names, less those by which Python and the runtime handle the object."""
    names = {name for base in root.__mro__[:-1] for name in vars(base)}
    public = [n for n in names if not n.startswith("_") or (n.startswith("__") and n not in _OF_THE_OBJECT)]
    return [(n, getattr(root, n)) for n in sorted(public) if inspect.isfunction(getattr(root, n))]


_OF_THE_OBJECT = frozenset(
    """__array__ __deepcopy__ __dlpack__ __dlpack_device__ __hash__ __init__ __init_subclass__ __iter__ __new__
    __reduce__ __reduce_ex__ __setstate__ __torch_function__""".split()  # noqa: SIM905
)


@functools.cache
def _attributes(root: Any) -> list[tuple[str, property]]:
    """Return Tensor's attributes, other than methods, under their names."""
    names = {name for base in root.__mro__[:-1] for name in vars(base)}
    return [(n, getattr(root, n)) for n in sorted(names) if isinstance(getattr(root, n), property)]


def _told_of(attribute: property) -> property:
    """Return a property of which PyTorch's methods of it are told: ``__get__``, ``__set__`` and ``__delete__``.

    What gradscope itself reads and writes is not told, as PyTorch's core tells nothing of what it does in C++.
    """

    def told(method: Any) -> Any:
        return lambda *args: method(*args) if _asked_from_within() else call(method, *args)

    setter, deleter = attribute.fset and told(attribute.__set__), attribute.fdel and told(attribute.__delete__)
    return property(told(attribute.__get__), setter, deleter, attribute.__doc__)


def _asked_from_within() -> bool:
    """Return whether code of gradscope, its compiled functions included, has asked the caller."""
    return f"{sys._getframe(2).f_globals.get('__name__')}.".startswith(_PACKAGE)


_PACKAGE = f"{__name__.partition('.')[0]}."


def _overridden(method: Any) -> Callable[..., Any]:
    @functools.wraps(method)
    def overridden(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = dispatch(method, (self, *args), kwargs)
        return method(self, *args, **kwargs) if result is NONE else result

    return overridden
