"""Parameters and buffers: tensors that a module counts among its own, some of which wait for their shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..runtime import state
from ..runtime.tensor.creation import empty
from ..runtime.tensor.overrides import disabled, has_say
from ..runtime.tensor.tensor import Tensor

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


class _ParameterType(type(Tensor)):  # type: ignore[misc]
    """The class of Parameter: a parameter that keeps a subclass of its own is an instance too."""

    def __instancecheck__(cls, instance: object) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterType):
    """A tensor that becomes a parameter of the module it is assigned to.

    Parameters
    ----------
    data : Tensor, optional
        Its memory is shared. What is of a subclass stays of it, and is a parameter all the same.

    See Also
    --------
    Buffer, UninitializedParameter, nn.Module.register_parameter

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Parameter(gs.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()
    __torch_function__ = disabled

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        """Return a parameter that shares memory and version with `data`."""
        source = empty(0) if data is None else data
        if not isinstance(source, Tensor):
            raise TypeError(
                f"Creating a Parameter from an instance of type {type(source).__name__} requires that detach() returns "
                "an instance of the same type.\nMake a tensor of it first: gradscope.tensor(...)."
            )
        if not has_say(type(source)):
            return cls._sharing(source).requires_grad_(requires_grad)
        kept = source.detach().requires_grad_(requires_grad)
        if type(kept) is not type(source):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(source).__name__} requires that detach() returns "
                f"an instance of the same type, but return type {type(kept).__name__} was found instead.\n"
                "Return it from __torch_function__, or hand over as_subclass(gradscope.Tensor)."
            )
        kept._is_param = True  # type: ignore[attr-defined]
        return kept  # type: ignore[return-value]

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]
        # As in PyTorch, without the gradient and the user's own attributes.
        result = memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return result


class Buffer(Tensor):
    """A tensor that becomes a buffer of the module it is assigned to.

    Parameters
    ----------
    data : Tensor, optional
        Its memory is shared.
    persistent : bool
        Whether it is part of the module's ``state_dict``.

    See Also
    --------
    Parameter, nn.Module.register_buffer

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Buffer(gs.zeros(2)).requires_grad
    False
    """

    __slots__ = ()
    __torch_function__ = disabled

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Buffer:
        """Return a buffer that shares memory and version with `data`."""
        source = empty(0) if data is None else data
        buffer = cls._sharing(source)
        buffer._flags |= source._flags & state.GRAD
        buffer.persistent = persistent
        return buffer


# --- waiting for a shape ----------------------------------------------------------------------------------------------

_held = Tensor._array  # the slot itself, which the classes below hide behind a property


class _Uninitialized(Tensor):
    """A tensor without a shape: it has a dtype and a device, and becomes another class once it is materialized."""

    __slots__ = ()
    __torch_function__ = disabled

    cls_to_become: type[Tensor]

    @classmethod
    def _waiting(cls, device: Any, dtype: Any) -> Any:
        return cls._wrap(empty(0, device=device, dtype=dtype)._array)

    @property
    def _array(self) -> Any:
        raise ValueError(
            "Attempted to use an uninitialized parameter in an operation. This error happens when you are using a "
            "`LazyModule` or explicitly manipulating `gradscope.nn.parameter.UninitializedParameter` objects.\n"
            "Call the module with a dummy batch first: that initializes its parameters."
        )

    @_array.setter
    def _array(self, array: Any) -> None:
        _held.__set__(self, array)

    def _stand_in(self) -> Tensor:
        """Return an empty tensor of the dtype, on the device."""
        return Tensor._wrap(_held.__get__(self))

    def _convert(self, function: Callable[[Tensor], Tensor]) -> None:
        """Take dtype and device of what a conversion makes of an empty tensor."""
        self._hold(function(self._stand_in())._array)

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Take a shape, with values that are still to be written; from then on it is like any other.

        `device` and `dtype` are those given here, or else those it was made with.
        """
        waiting = self._stand_in()
        made = empty(*shape, device=device or waiting.device, dtype=dtype or waiting.dtype)
        self.__class__ = self.cls_to_become  # type: ignore[assignment]
        self._hold(made._array)

    @property
    def shape(self) -> Any:
        """None yet: it raises."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    @property
    def device(self) -> Any:
        """The device it will be on."""
        return self._stand_in().device

    def detach(self) -> Any:
        """Return itself: there is nothing to detach."""
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), self._settings()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(*self._settings())
        return memo[id(self)]

    def _settings(self) -> tuple[Any, ...]:
        """Return what it was made with."""
        return self.requires_grad, self.device, self.dtype

    def __repr__(self, **options: Any) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter whose shape is not known yet; :meth:`materialize` makes it a :class:`Parameter`.

    See Also
    --------
    Parameter, LazyLinear

    Examples
    --------
    >>> import gradscope as gs
    >>> weight = gs.nn.UninitializedParameter()
    >>> weight.materialize((2, 3))
    >>> weight.shape
    gradscope.Size([2, 3])
    """

    __slots__ = ()

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        """Return a parameter without a shape."""
        parameter = cls._waiting(device, dtype)
        if requires_grad:
            parameter._flags |= state.GRAD
        return parameter


class UninitializedBuffer(_Uninitialized):
    """A buffer whose shape is not known yet; :meth:`materialize` makes it a tensor.

    See Also
    --------
    Buffer, UninitializedParameter

    Examples
    --------
    >>> import gradscope as gs
    >>> buffer = gs.nn.UninitializedBuffer()
    >>> buffer.materialize((2, 3))
    >>> buffer.shape
    gradscope.Size([2, 3])
    """

    __slots__ = ()

    cls_to_become = Tensor
    persistent: bool

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        """Return a buffer without a shape."""
        buffer = cls._waiting(device, dtype)
        if requires_grad:
            buffer._flags |= state.GRAD
        buffer.persistent = persistent
        return buffer

    def _settings(self) -> tuple[Any, ...]:
        return *super()._settings(), self.persistent


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer is still without a shape."""
    return isinstance(param, _Uninitialized)
