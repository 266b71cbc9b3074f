"""Parametrizations: a parameter or buffer computed from others by modules, each time it is read."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...runtime.modes import no_grad
from ...runtime.tensor.tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_depth = 0
_cache: dict[tuple[int, str], Any] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once for the length of the block, and read it again from there.

    See Also
    --------
    register_parametrization

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.utils.parametrizations.weight_norm(gs.nn.Linear(3, 2))
    >>> with gs.nn.utils.parametrize.cached():
    ...     print(layer.weight is layer.weight)
    True
    """
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and the tensors that it is computed from.

    Parameters
    ----------
    modules : sequence of Module
        The first is applied first.
    original : Parameter or Tensor
        What they take the place of; each that has a ``right_inverse`` is initialised from it.
    unsafe : bool
        Whether shape and dtype may change.

    Attributes
    ----------
    original, original0, original1, ... : Parameter or Tensor
        One tensor, or as many as the first parametrization's ``right_inverse`` has returned.
    is_tensor : bool
        Whether it is one tensor.

    See Also
    --------
    register_parametrization : makes one.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.nn.utils import parametrize
    >>> class Symmetric(gs.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = parametrize.register_parametrization(gs.nn.Linear(2, 2), "weight", Symmetric())
    >>> chain = layer.parametrizations.weight
    >>> type(chain).__name__, len(chain), gs.equal(chain(), layer.weight), chain.original.is_leaf
    ('ParametrizationList', 1, True, True)
    """

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            new: Any = original
            for module in reversed(modules):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass
        if not isinstance(new, Tensor) and not isinstance(new, Sequence):
            raise ValueError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(new).__name__}"
            )
        self._take(new, original)
        if not unsafe:
            with no_grad():
                value = self()
            _check_same(
                value,
                (shape, dtype),
                "Registering a parametrization may not change the {} of the tensor, unless `unsafe` flag is enabled.",
                ("unparametrized {}", "parametrized {}"),
            )

    def _take(self, new: Any, original: Any) -> None:
        """Make what ``right_inverse`` has returned the originals."""
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            # The parameter stays the one that an optimizer may have.
            _put_memory(original, new)
            _register(self, "original", original)
        else:
            self._register_several(new, original)

    def _register_several(self, new: Sequence[Any], original: Any) -> None:
        for position, part in enumerate(new):
            if not isinstance(part, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                    f"{position} of the sequence with type {type(part).__name__}."
                )
            if isinstance(original, Parameter):
                part = Parameter(part, original.requires_grad)
            part.requires_grad_(original.requires_grad)
            _register(self, f"original{position}", part)

    def originals(self) -> list[Any]:
        """Return the tensors that the parametrized one is computed from."""
        return [tensor for _, tensor in self.named_originals()]

    def named_originals(self) -> list[tuple[str, Any]]:
        """Return them with the names of their attributes."""
        names = ["original"] if self.is_tensor else [f"original{position}" for position in range(self.ntensors)]
        return [(name, getattr(self, name)) for name in names]

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrized tensor becomes `value`.

        Raises
        ------
        RuntimeError
            If a parametrization has no ``right_inverse``.
        """
        new: Any = value
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse.\n"
                        "Write into the originals, or define right_inverse()."
                    )
                new = module.right_inverse(new)
            parts = [new] if self.is_tensor else list(new)
            if len(parts) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                    f"length {len(parts)}."
                )
            for original, part in zip(self.originals(), parts, strict=True):
                if not isinstance(part, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(part).__name__}")
                if part.dtype != original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {part.dtype} while `original` has dtype "
                        f"{original.dtype}"
                    )
                _put_memory(original, part)

    def forward(self) -> Tensor:
        """Compute the parametrized tensor."""
        first, *others = self
        value = first(*self.originals())
        for module in others:
            value = module(value)
        return value


def _put_memory(original: Any, new: Tensor) -> None:
    if new is not original:
        original.data = new.detach()


def _register(module: Module, name: str, tensor: Any) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check_same(value: Any, before: tuple[Any, Any], said: str, names: tuple[str, str]) -> None:
    """Raise ValueError unless `value` is a tensor of a shape and a dtype."""
    if not isinstance(value, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
    for what, wanted, got in (("dtype", before[1], value.dtype), ("shape", before[0], value.shape)):
        if wanted != got:
            rows = f"{names[0].format(what)}: {wanted}\n{names[1].format(what)}: {got}"
            raise ValueError(f"{said.format(what)}\n{rows}")


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of `module` by `parametrization` from now on.

    Parameters
    ----------
    module : Module
        Its class becomes a subclass of what it was.
    parametrization : Module
        Called with the original tensor; where it has a ``right_inverse``, assigning to the tensor works too.
    unsafe : bool
        Whether shape and dtype may change.

    Returns
    -------
    Module
        The same.

    Raises
    ------
    ValueError
        If there is no such tensor, or the result does not fit.

    See Also
    --------
    remove_parametrizations, nn.utils.parametrizations

    Examples
    --------
    >>> import gradscope as gs
    >>> class Symmetric(gs.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = register_parametrization(gs.nn.Linear(3, 3), "weight", Symmetric())
    >>> gs.equal(layer.weight, layer.weight.T)
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        _append(module, tensor_name, parametrization, unsafe)
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        added = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _change_class(module)
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _property(tensor_name))
        _lists(module)[tensor_name] = added
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def _lists(module: Module) -> Any:
    return module.parametrizations


def _append(module: Module, name: str, parametrization: Any, unsafe: bool) -> None:
    """Apply one more parametrization to what the others compute; the originals stay, so the tensor changes."""
    lists = _lists(module)
    if not unsafe:
        with no_grad():
            _check_fits(parametrization, name, getattr(module, name))
    lists[name].append(parametrization)
    lists[name].unsafe |= unsafe


def _check_fits(parametrization: Any, name: str, value: Any) -> None:
    said = "Registering a parametrization may not change the {} of the tensor, unless the `unsafe` flag is enabled."
    before = value.shape, value.dtype
    _check_same(parametrization(value), before, said, (f"module.{name}.{{}}", f"parametrization(module.{name}).{{}}"))
    if not hasattr(parametrization, "right_inverse"):
        return
    wanted = parametrization.right_inverse(value)
    if not isinstance(wanted, Tensor):
        raise ValueError(
            f"parametrization.right_inverse must return a tensor. Got: {type(wanted).__name__}\n"
            "Only the first parametrization of a tensor may have several originals."
        )
    said = (
        f"The tensor returned by parametrization.right_inverse must have the same {{}} as module.{name}, unless the "
        "`unsafe` flag is enabled."
    )
    _check_same(wanted, before, said, (f"module.{name}.{{}}", "returned {}"))


def _change_class(module: Module) -> None:
    """Give a module a class of its own, on which properties can be put."""

    def getstate(self: Module) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict().\n"
            "Save state_dict(), and register the parametrizations before loading it."
        )

    def deepcopy(self: Module, memo: dict[int, Any]) -> Module:
        found = memo.get(id(self))
        if found is not None:
            return found
        # The copy gets a class of its own: a property that is removed from one is not removed from the other.
        replica = memo[id(self)] = type(self).__new__(_subclass(type(self).__bases__[0], dict(vars(type(self)))))
        replica.__dict__ = copy.deepcopy(self.__dict__, memo)
        return replica

    kind = type(module)
    attributes: dict[str, Any] = {"__getstate__": getstate}
    if not hasattr(kind, "__deepcopy__"):
        attributes["__deepcopy__"] = deepcopy
    module.__class__ = _subclass(kind, attributes)


def _subclass(kind: type, attributes: dict[str, Any]) -> Any:
    for name in ("__dict__", "__weakref__"):
        attributes.pop(name, None)
    attributes["__module__"] = __name__
    name = kind.__name__ if kind.__name__.startswith("Parametrized") else f"Parametrized{kind.__name__}"
    return type(name, (kind,), attributes)


def _property(name: str) -> property:
    def read(self: Any) -> Tensor:
        if not _depth:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def write(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(read, write)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module has parametrizations, or one of a tensor of this name.

    See Also
    --------
    register_parametrization

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.utils.parametrize.is_parametrized(gs.nn.Linear(3, 2))
    False
    """
    lists = getattr(module, "parametrizations", None)
    if not isinstance(lists, ModuleDict):
        return False
    return len(lists) > 0 if tensor_name is None else tensor_name in lists


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parametrized tensor a plain one again.

    Parameters
    ----------
    leave_parametrized : bool
        Whether it keeps its present value; otherwise it becomes the original again.

    Returns
    -------
    Module
        The same, of its former class when this was its last parametrization.

    Raises
    ------
    ValueError
        If there is no such parametrization, or there are several originals and one is to be left.

    See Also
    --------
    register_parametrization

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.utils.parametrizations.weight_norm(gs.nn.Linear(3, 2))
    >>> _ = gs.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    lists = _lists(module)
    removed = lists[tensor_name]
    if removed.is_tensor:
        left = removed.original
        if leave_parametrized:
            with no_grad():
                _put_memory(left, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        left = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del lists[tensor_name]
    _register(module, tensor_name, left)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class that a module has without its parametrizations.

    See Also
    --------
    is_parametrized

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.utils.parametrizations.weight_norm(gs.nn.Linear(3, 2))
    >>> gs.nn.utils.parametrize.type_before_parametrizations(layer).__name__
    'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Register the parametrizations of one module with another, which shares their originals; return the other.

    Parameters
    ----------
    tensor_name : str, optional
        Of this tensor alone.

    Raises
    ------
    ValueError
        If the first module has parametrizations, but none of `tensor_name`.

    See Also
    --------
    register_parametrization : registers one.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.nn.utils import parametrizations, parametrize
    >>> source = parametrizations.orthogonal(gs.nn.Linear(2, 2))
    >>> target = parametrize.transfer_parametrizations_and_params(source, gs.nn.Linear(2, 2))
    >>> gs.equal(source.weight, target.weight)
    True
    >>> target.parametrizations.weight.original is source.parametrizations.weight.original
    True
    """
    if not is_parametrized(from_module):
        return to_module
    lists = _lists(from_module)
    if tensor_name is not None and tensor_name not in lists:
        raise ValueError(f"Module {from_module} does not have a parametrization on {tensor_name}")
    for name in list(lists) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            _register(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for parametrization in lists[name]:
            register_parametrization(to_module, name, parametrization)
        # The tensors themselves: an optimizer that has them goes on training both modules.
        for original, tensor in lists[name].named_originals():
            setattr(_lists(to_module)[name], original, tensor)
    return to_module
