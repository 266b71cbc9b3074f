"""Modules that hold modules or parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from ...runtime.tensor.tensor import Tensor
from ..parameter import Parameter
from .module import Module

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _position(index: Any, count: int) -> int:
    index = operator.index(index)
    if not -count <= index < count:
        raise IndexError(f"index {index} is out of range\nThere are {count} entries.")
    return index % count


class _Numbered(Module):
    """Submodules named 0, 1, 2, ..."""

    def _values(self) -> list[Any]:
        return list(self._modules.values())

    def _renumber(self, modules: Iterable[Any]) -> None:
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._sliced(index)
        return self._values()[_position(index, len(self))]

    def _sliced(self, index: slice) -> Any:
        return type(self)(self._values()[index])  # type: ignore[call-arg]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, list(self._modules)[_position(index, len(self))], module)

    def __delitem__(self, index: Any) -> None:
        modules = self._values()
        if not isinstance(index, slice):
            index = _position(index, len(modules))
        del modules[index]
        self._renumber(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Any:
        """Add a module at the end; return the container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add modules at the end; return the container."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Put a module before position `index`; return the container."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        modules = self._values()
        if not -len(modules) <= index <= len(modules):
            raise IndexError(f"Index out of range: {index}")
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: Any = -1) -> Module:
        """Take a module out and return it."""
        module = self[key]
        del self[key]
        return module


def _check_factor(sequence: Sequential, factor: Any) -> None:
    if not isinstance(factor, int):
        raise TypeError(f"unsupported operand type(s) for *: {type(sequence)} and {type(factor)}\nGive an integer.")
    if factor <= 0:
        raise ValueError(f"Non-positive multiplication factor {factor} for {type(sequence)}\nIt is 1 at least.")


class Sequential(_Numbered):
    """Modules that are called one after the other.

    Parameters
    ----------
    *args : Module, or one ordered dict of them
        The modules in the order in which they are called; without a dict their names are numbers from 0.

    See Also
    --------
    ModuleList, Module

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Sequential(gs.nn.Linear(2, 3), gs.nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], dict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def _sliced(self, index: slice) -> Sequential:
        return type(self)(OrderedDict(list(self._modules.items())[index]))

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Sequential:
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        """Return its modules `other` times over: the same ones, which share their parameters."""
        _check_factor(self, other)
        return Sequential(*list(self) * other)

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        _check_factor(self, other)
        return self.extend(list(self) * (other - 1))

    def forward(self, input: Any) -> Any:
        """Return what the last module makes of what the others made of `input`."""
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input


class ModuleList(_Numbered):
    """A list of modules, all of which are submodules.

    Parameters
    ----------
    modules : iterable of Module, optional
        The modules, whose names are numbers from 0. They are not called by the list.

    See Also
    --------
    ModuleDict, Sequential, ParameterList

    Examples
    --------
    >>> import gradscope as gs
    >>> layers = gs.nn.ModuleList([gs.nn.Linear(2, 2), gs.nn.Linear(2, 1)])
    >>> len(layers), [name for name, _ in layers.named_parameters()]
    (2, ['0.weight', '0.bias', '1.weight', '1.bias'])
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __repr__(self) -> str:
        if not self._modules:
            return f"{self._get_name()}()"
        lines, first = [], 0
        for text, alike in groupby(repr(module) for module in self):
            count = len(list(alike))
            name = f"({first})" if count == 1 else f"({first}-{first + count - 1})"
            lines.append(f"{name}: {'' if count == 1 else f'{count} x '}{text}".replace("\n", "\n  "))
            first += count
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dict of modules, all of which are submodules.

    Parameters
    ----------
    modules : mapping or iterable of pairs, optional
        The modules by name; the name is the attribute, and a part of the keys of the state dict.

    See Also
    --------
    ModuleList, ParameterDict

    Examples
    --------
    >>> import gradscope as gs
    >>> layers = gs.nn.ModuleDict({"hidden": gs.nn.Linear(2, 3), "out": gs.nn.Linear(3, 1)})
    >>> list(layers)
    ['hidden', 'out']
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Take a module out and return it."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Return pairs of name and module."""
        return self._modules.items()

    def values(self) -> Any:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add the modules of a mapping or of pairs."""
        for key, module in modules.items() if hasattr(modules, "items") else modules:
            self[key] = module


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


class ParameterList(Module):
    """A list of parameters; tensors put into it become parameters.

    See Also
    --------
    ParameterDict, ModuleList

    Examples
    --------
    >>> import gradscope as gs
    >>> weights = gs.nn.ParameterList([gs.ones(2), gs.zeros(3)])
    >>> [name for name, _ in weights.named_parameters()]
    ['0', '1']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        self.extend(values or ())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return ParameterList([self[i] for i in range(self._size)[index]])
        return getattr(self, str(_position(index, self._size)))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_position(index, self._size)), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(self._size)])

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Add a parameter at the end; return the list."""
        setattr(self, str(self._size), _as_parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add parameters at the end; return the list."""
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return "\n".join(_described(str(i), value) for i, value in enumerate(self))


class ParameterDict(Module):
    """A dict of parameters; tensors put into it become parameters.

    Parameters
    ----------
    parameters : mapping or iterable of pairs, optional
        The parameters by name; the name is a part of the keys of the state dict.

    See Also
    --------
    ParameterList, ModuleDict

    Examples
    --------
    >>> import gradscope as gs
    >>> weights = gs.nn.ParameterDict({"scale": gs.ones(2)})
    >>> [name for name, _ in weights.named_parameters()]
    ['scale']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        self.update(parameters or {})

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def keys(self) -> Any:
        """Return the names."""
        return self._keys.keys()

    def items(self) -> list[tuple[str, Any]]:
        """Return pairs of name and parameter."""
        return [(key, self[key]) for key in self._keys]

    def values(self) -> list[Any]:
        """Return the parameters."""
        return [self[key] for key in self._keys]

    def update(self, parameters: Any) -> None:
        """Add the parameters of a mapping or of pairs."""
        for key, value in parameters.items() if hasattr(parameters, "items") else parameters:
            self[key] = value

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return "\n".join(_described(key, value) for key, value in self.items())


def _described(name: str, value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"  ({name}): Object of type: {type(value).__name__}"
    size = "x".join(str(s) for s in value.shape)
    return f"  ({name}): {'Parameter' if isinstance(value, Parameter) else 'Tensor'} containing: " + (
        f"[{value.dtype} of size {size}]"
    )
