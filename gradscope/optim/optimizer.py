"""Optimizer: what all optimizers share. Updates run on the bare arrays, in place, and count as writes.

On the CPU an update goes through a parameter in blocks that stay in the cache, whatever number of passes it makes.
"""

from __future__ import annotations

import copy
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, ClassVar

from ..runtime import events
from ..runtime.graph.hooks import HookTable, RemovableHandle, add_hook
from ..runtime.kernels import updates
from ..runtime.memory import device as devices
from ..runtime.memory.dtype import float64, get_default_dtype
from ..runtime.modes import enable_grad
from ..runtime.ops.declaration.registry import OPERATORS
from ..runtime.tensor.tensor import Tensor
from ..runtime.user_warnings import warn
from .differentiable_steps import recorded_parts
from .foreach import SCALARS, Bundle, Layout, bundles

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]

Hook = Callable[..., Any]

_step_pre_hooks: HookTable = HookTable()
_step_post_hooks: HookTable = HookTable()


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required: Any = _Required()


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before the step of every optimizer."""
    return add_hook(_step_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after the step of every optimizer."""
    return add_hook(_step_post_hooks, hook)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return `step` with the step hooks around it; without hooks it costs one test."""
    if getattr(step, "hooked", False):
        return step

    @functools.wraps(step)
    def hooked_step(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if events.wanted(events.WriteStarted):
            self._tell_write_started()
        if not (_step_pre_hooks or _step_post_hooks or self._step_pre_hooks or self._step_post_hooks):
            result = step(self, *args, **kwargs)
            if not (_step_post_hooks or self._step_post_hooks):  # a closure may have registered one
                return result
            for hook in (*self._step_post_hooks.values(), *_step_post_hooks.values()):
                hook(self, (self, *args), kwargs)
            return result
        arguments: tuple[Any, ...] = (self, *args)
        for hook in (*_step_pre_hooks.values(), *self._step_pre_hooks.values()):
            replaced = hook(self, arguments, kwargs)
            if replaced is None:
                continue
            if not (isinstance(replaced, tuple) and len(replaced) == 2):
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {replaced}.")
            arguments, kwargs = replaced
        result = step(*arguments, **kwargs)
        for hook in (*self._step_post_hooks.values(), *_step_post_hooks.values()):
            hook(self, arguments, kwargs)
        return result

    hooked_step.hooked = True  # type: ignore[attr-defined]
    return hooked_step


class Optimizer:
    """Base of all optimizers.

    A subclass defines ``step``; it finds the parameters in :attr:`param_groups` and keeps what it needs from one step
    to the next in :attr:`state`.

    Parameters
    ----------
    params : iterable of Tensor, of (name, Tensor), or of dict
        The parameters; dicts with a key ``"params"`` make groups with settings of their own.
    defaults : dict
        The settings of groups that have none of their own.

    Attributes
    ----------
    state : dict
        Of each parameter, by the parameter.

    Raises
    ------
    TypeError
        If `params` is a tensor, or holds something else than tensors.
    ValueError
        If there are no parameters, or one is no leaf.

    Notes
    -----
    The settings that most optimizers share: with `maximize` they go up the gradient; with ``foreach=False`` they update
    one small parameter after another, which takes longer and gives the same numbers; `capturable` and `fused` are
    accepted for PyTorch's sake and change nothing. With `differentiable`
    steps are recorded, as functions of the parameters before, of their gradients, and of a learning rate or weight
    decay that is a tensor; the parameters are no leaves then.

    See Also
    --------
    SGD, Adam, lr_scheduler

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.ones(2))
    >>> optimizer = gs.optim.SGD([{"params": [w], "lr": 0.5}], lr=0.1)
    >>> optimizer.param_groups[0]["lr"]
    0.5
    """

    param_groups: list[dict[str, Any]]
    state: defaultdict[Tensor, Any]

    _elementwise: ClassVar[bool] = False
    """Whether what becomes of a number depends on the state of that number alone, so that parameters may be joined."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        self._make_transient()
        _check_implementation(defaults)
        if isinstance(params, Tensor):
            raise TypeError(
                f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{params.type()}\nPut it in a list: [parameter]."
            )
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_scratch" not in self.__dict__:
            self._make_transient()

    def _make_transient(self) -> None:
        """Make what is neither copied nor saved: work arrays and hooks."""
        self._scratch: dict[Any, Any] = {}
        self._layouts: dict[Any, Layout] = {}
        self._step_pre_hooks: HookTable = HookTable()
        self._step_post_hooks: HookTable = HookTable()
        self._state_dict_pre_hooks: HookTable = HookTable()
        self._state_dict_post_hooks: HookTable = HookTable()
        self._load_state_dict_pre_hooks: HookTable = HookTable()
        self._load_state_dict_post_hooks: HookTable = HookTable()

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # --- groups ---

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters: a dict with ``"params"`` and settings.

        Raises
        ------
        ValueError
            If a parameter is no leaf, is in another group already, or is a conjugate view.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in "
                "sets will change between runs. Please use a list instead."
            )
        entries = [params] if isinstance(params, Tensor) else list(params)
        names = [entry[0] for entry in entries if isinstance(entry, tuple)]
        if names and len(names) < len(entries):
            raise ValueError(
                "all optimizer params should be with/without names. Some param names are missing\n"
                f"{len(names)} of {len(entries)} have one: take all from named_parameters(), or all from parameters()."
            )
        if names:
            param_group["param_names"] = names
            entries = [tensor for _, tensor in entries]
        param_group["params"] = entries
        self._check_parameters(entries)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if any(("param_names" in group) != ("param_names" in param_group) for group in self.param_groups):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with' if 'param_names' in param_group else 'without'} names to the optimizer\n"
                "Take all groups from named_parameters(), or all from parameters()."
            )
        present = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in present for p in entries):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _check_parameters(self, entries: list[Any]) -> None:
        for parameter in entries:
            if not isinstance(parameter, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {type(parameter).__name__}"
                )
            if parameter.is_conj() or parameter.is_neg():
                raise ValueError(
                    f"can't optimize a Tensor that is a conjugate or a negative of its memory, of shape "
                    f"{list(parameter.shape)}\nOptimize parameter.resolve_conj().resolve_neg(), made a leaf."
                )
            if not (self.defaults.get("differentiable") or parameter.is_leaf or parameter.retains_grad):
                raise ValueError(
                    f"can't optimize a non-leaf Tensor\nIts shape is {list(parameter.shape)}; it was computed by "
                    f"{parameter.grad_fn}. Optimize the leaf it comes from, or parameter.detach().requires_grad_()."
                )
        if len({id(p) for p in entries}) != len(entries):
            warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
            )

    # --- stepping ---

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters; a subclass defines it.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss anew, with gradients, and returns it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define step()")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters (or fill them with zeros)."""
        for group in self.param_groups:
            for parameter in group["params"]:
                meta = parameter._meta
                if meta is None or meta.grad is None:
                    continue
                if set_to_none:
                    meta.grad = None
                    continue
                if meta.grad.grad_fn is not None:
                    meta.grad.detach_()
                else:
                    meta.grad.requires_grad_(False)
                meta.grad.zero_()

    def _tell_write_started(self) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    events.emit(events.WriteStarted(parameter))

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return new arguments."""
        return add_hook(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return add_hook(self._step_post_hooks, hook)

    def _evaluate(self, closure: Callable[[], Any] | None) -> Any:
        """Return what the closure computes, with recording on."""
        if closure is None:
            return None
        with enable_grad():
            return closure()

    def _blocks(
        self, count: int, group: dict[str, Any], parameter: Tensor, grad: Tensor, *states: Tensor
    ) -> Iterator[tuple[Any, ...]]:
        """Yield parts of arrays that fit the cache: the array module, the arrays, `count` work arrays of their shape.

        The arrays are those of the parameter, of its gradient, which stays as it is, and of the states. Where the steps
        are to be recorded there is one part, of tensors in the place of arrays.
        """
        if group["differentiable"]:
            return recorded_parts(count, parameter, grad, states)
        return self._array_blocks(count, parameter._array, grad._array, *[state._array for state in states])

    def _array_blocks(self, count: int, *arrays: Any) -> Iterator[tuple[Any, ...]]:
        first = arrays[0]
        xp = devices.array_module(first)
        if first.dtype.kind == "c":
            view_as_real = OPERATORS["view_as_real"].run_forward
            arrays = tuple(view_as_real(xp, a) for a in arrays)
            first = arrays[0]
        whole = type(first) is not devices.ndarray or first.size <= BLOCK
        if whole or not all(a.flags.c_contiguous for a in arrays):
            yield (xp, *arrays, *[xp.empty_like(first) for _ in range(count)])
            return
        flat = [a.reshape(-1) for a in arrays]
        size = first.size
        block = -(-size // round(size / BLOCK))  # the parts have one size, so that none is a small rest
        work = [self._buffer(first, number)[:block] for number in range(count)]
        for start in range(0, size, block):
            if start + block > size:
                work = [w[: size - start] for w in work]
            yield (xp, *[f[start : start + block] for f in flat], *work)

    def _buffer(self, like: Any, number: Any) -> Any:
        """Return one of the work arrays that all blocks of a dtype share."""
        key = like.dtype, number
        buffer = self._scratch.get(key)
        if buffer is None:
            # Parts of one size are up to half as large again: 1.49 blocks are one part.
            buffer = self._scratch[key] = devices.array_module(like).empty(BLOCK * 3 // 2, dtype=like.dtype)
        return buffer

    # --- small parameters together ---

    def _with_gradients(self, group: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
        """Yield the parameters of a group that have a gradient, and it: small ones as bundles, where they may be."""
        if self._elementwise and group.get("foreach") is not False and not group.get("differentiable"):
            return bundles(group, self.state, self._layout)
        return ((p, p._meta.grad) for p in group["params"] if p._meta is not None and p._meta.grad is not None)

    def _layout(self, kind: Any, shapes: list[Any]) -> Layout:
        """Return the layout of a bundle, as a rule that of the last step; all layouts share their vectors."""
        key = kind, tuple(shapes)
        layout = self._layouts.get(key)
        if layout is None:
            if len(self._layouts) >= _KEPT_LAYOUTS:
                self._layouts.clear()
            buffer = functools.partial(self._buffer, devices.numpy.empty(0, kind))
            layout = self._layouts[key] = Layout(shapes, lambda number: buffer(("bundle", number)))
        return layout

    def _held(self, parameter: Any) -> dict[str, Any]:
        """Return what is kept of a parameter, or of a bundle of them."""
        return parameter.state if type(parameter) is Bundle else self.state[parameter]

    def _vectors(self, group: dict[str, Any], parameter: Any, *others: Any) -> list[Any] | None:
        """Return arrays for a compiled pass; None where there is none for them.

        What a bundle joins is too small for one, and the numbers of a parameter do not depend on what is beside it.
        """
        if group["differentiable"] or type(parameter) is Bundle:
            return None
        return updates.vectors(parameter._array, *[other._array for other in others])

    def _finish(self, parameter: Any, name: str, writes: int) -> None:
        """Write the numbers of a bundle back, and count the writes to each parameter."""
        if type(parameter) is Bundle:
            parameter.write_back()
        for _ in range(writes):
            parameter._bump(name)

    # --- state ---

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before :meth:`state_dict`."""
        return add_hook(self._state_dict_pre_hooks, hook, prepend=prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after :meth:`state_dict`; it may return another one."""
        return add_hook(self._state_dict_post_hooks, hook, prepend=prepend)

    def register_load_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before :meth:`load_state_dict`; it may return another one."""
        return add_hook(self._load_state_dict_pre_hooks, hook, prepend=prepend)

    def register_load_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after :meth:`load_state_dict`."""
        return add_hook(self._load_state_dict_post_hooks, hook, prepend=prepend)

    def state_dict(self) -> dict[str, Any]:
        """Return the state and the groups, with numbers in the place of parameters."""
        for hook in self._state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}

        def packed(group: dict[str, Any]) -> dict[str, Any]:
            result = {key: value for key, value in group.items() if key != "params"}
            for parameter in group["params"]:
                numbers.setdefault(id(parameter), len(numbers))
            result["params"] = [numbers[id(parameter)] for parameter in group["params"]]
            return result

        groups = [packed(group) for group in self.param_groups]
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        return self._passed(self._state_dict_post_hooks, {"state": state, "param_groups": groups})

    def _passed(self, hooks: HookTable, state_dict: dict[str, Any]) -> dict[str, Any]:
        """Return a state dict after the hooks that may replace it."""
        for hook in hooks.values():
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        return state_dict

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` of an optimizer with groups of the same sizes returned.

        Raises
        ------
        ValueError
            If the groups differ.
        """
        state_dict = self._passed(self._load_state_dict_pre_hooks, state_dict.copy())
        saved = state_dict["param_groups"]
        if len(self.param_groups) != len(saved):
            raise ValueError(
                "loaded state dict has a different number of parameter groups\n"
                f"The optimizer has {len(self.param_groups)}, the state dict {len(saved)}."
            )
        for mine, theirs in zip(self.param_groups, saved, strict=True):
            if len(mine["params"]) != len(theirs["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group\n"
                    f"The optimizer's has {len(mine['params'])} parameters, the loaded one {len(theirs['params'])}."
                )
        numbers = chain.from_iterable(group["params"] for group in saved)
        parameters = chain.from_iterable(group["params"] for group in self.param_groups)
        by_number = dict(zip(numbers, parameters, strict=True))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            parameter = by_number.get(key)
            state[key if parameter is None else parameter] = (
                copy.deepcopy(value) if parameter is None else _fitted(value, parameter)
            )
        groups = [_merged(mine, theirs) for mine, theirs in zip(self.param_groups, saved, strict=True)]
        # A subclass converts older states there, as in PyTorch.
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._load_state_dict_post_hooks.values():
            hook(self)


class ParameterwiseOptimizer(Optimizer):
    """Base of the optimizers that update one parameter after another; a subclass defines ``_update``."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        complete_groups(self)
        for held in self.state.values():
            for name in SCALARS & held.keys():
                if not isinstance(held[name], Tensor):
                    held[name] = scalar_state(held[name])

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; return the closure's loss, if there is one."""
        loss = self._evaluate(closure)
        name = f"{type(self).__name__}.step"
        for group in self.param_groups:
            # Recorded operators count their writes themselves.
            writes = self._writes(group) if not group.get("differentiable") else 0
            for parameter, grad in self._with_gradients(group):
                self._update(parameter, grad, group)
                self._finish(parameter, name, writes)
        return loss

    def _writes(self, group: dict[str, Any]) -> int:
        """Return how many writes to a parameter PyTorch makes of one update: each counts as a version."""
        # PyTorch shrinks the parameter in a write of its own.
        return 2 if group.get("decoupled_weight_decay") and group["weight_decay"] else 1

    def _state_of(self, parameter: Tensor, *zeros: str, **numbers: float) -> dict[str, Any]:
        """Return the state of a parameter: before its first step a count, zeros like it and `numbers`, by name."""
        state = self._held(parameter)
        if not state:
            state["step"] = scalar_state(0)
            state.update({name: scalar_state(number) for name, number in numbers.items()})
            state.update({name: zeros_state(parameter) for name in zeros})
        return state

    def _update(self, parameter: Any, grad: Any, group: dict[str, Any]) -> None:
        """Update `parameter`, which may be a :class:`Bundle`, and its state; `grad` stays as it is."""
        raise NotImplementedError(f"{type(self).__name__} does not define _update()")


BLOCK = 1 << 16
"""About how many elements of a parameter are updated at once on the CPU."""

_KEPT_LAYOUTS = 64
"""How many layouts of bundles are kept; there are more where other parameters have gradients at each step."""

_ADDED_LATER = {
    "amsgrad": False,
    "capturable": False,
    "decoupled_weight_decay": False,
    "differentiable": False,
    "foreach": None,
    "fused": None,
    "maximize": False,
}
"""Settings that groups of older versions lack, and what they did without."""

_ON_HOST = frozenset(["mu_product", "eta", "mu"])
"""Scalars of the state that stay on the host, as counts do, so that reading them waits for no device."""


def _check_implementation(settings: dict[str, Any]) -> None:
    """Refuse what PyTorch refuses of the settings that choose an implementation."""
    if settings.get("fused"):
        if settings.get("differentiable"):
            raise RuntimeError("`fused` does not support `differentiable`\nLeave out one of them.")
        if settings.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.\nLeave out one of them.")


def complete_groups(optimizer: Optimizer, **settings: Any) -> None:
    """Give the groups that an older version has saved the settings that it did not know; `settings` are more of them.

    The values are what it did without them, as in PyTorch, whatever the optimizer was made with.
    """
    for group in optimizer.param_groups:
        for name, value in {**_ADDED_LATER, **settings}.items():
            if name in optimizer.defaults:
                group.setdefault(name, value)


def _merged(mine: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Return a group with the parameters of one and the settings of another, which are copied."""
    group = copy.deepcopy({key: value for key, value in theirs.items() if key != "params"})
    group["params"] = mine["params"]
    if "param_names" in mine:
        group.setdefault("param_names", mine["param_names"])
    return group


def _fitted(value: Any, parameter: Tensor, name: str = "") -> Any:
    """Return a copy of loaded state in the dtype and on the device of its parameter; counts stay as they are."""
    if isinstance(value, Tensor):
        if name == "step" or not parameter.is_floating_point():
            return value.detach().clone()
        device = value.device if name in _ON_HOST else parameter.device
        return value.detach().to(device=device, dtype=parameter.dtype, copy=True)
    if isinstance(value, dict):
        return {key: _fitted(item, parameter, key) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, OrderedDict)):
        return type(value)(_fitted(item, parameter) for item in value)  # type: ignore[call-arg]
    return value


_SAID_AS = {"lr": "learning rate", "eps": "epsilon value"}
"""What PyTorch calls settings in its complaints; any other is a "NAME value"."""


def check_settings(**settings: Any) -> None:
    """Raise ValueError unless each setting is in its range: the `betas` from 0 to below 1, any other from 0 up."""
    for name, value in settings.items():
        if name == "lr":
            check_one(value)
        if name == "betas":
            for index, beta in enumerate(value):
                _check_range(f"beta parameter at index {index}", beta, 1.0)
        else:
            _check_range(_SAID_AS.get(name, f"{name} value"), value)


def _check_range(name: str, value: Any, end: float | None = None) -> None:
    number = plain_number(value)
    if not number >= 0.0 or (end is not None and not number < end):
        raise ValueError(f"Invalid {name}: {value}")


def check_one(lr: Any) -> None:
    """Raise ValueError if the learning rate is a tensor of several numbers, or of none."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError(f"Tensor lr must be 1-element\nIts shape is {list(lr.shape)}.")


def decays(group: dict[str, Any], lr: float) -> tuple[float, float]:
    """Return what the parameter is multiplied by, and the weight decay of the gradient: one of them has an effect."""
    decay = group["weight_decay"]
    return (1 - lr * decay, 0) if group["decoupled_weight_decay"] else (1, decay)


def plain_number(value: Any) -> float:
    """Return a setting that may be a one-element tensor as a number."""
    return value.item() if isinstance(value, Tensor) else value


def setting(group: dict[str, Any], name: str) -> Any:
    """Return a setting as a number; where steps are recorded it may be a one-element tensor that takes part."""
    return group[name] if group["differentiable"] else plain_number(group[name])


def zeros_state(parameter: Tensor) -> Tensor:
    """Return zeros laid out like a parameter."""
    return Tensor._wrap(devices.array_module(parameter._array).zeros_like(parameter._array))


def scalar_state(value: float) -> Tensor:
    """Return a scalar of the state: on the host, so that reading it waits for no device."""
    dtype = devices.numpy.float64 if get_default_dtype() is float64 else devices.numpy.float32
    return Tensor._wrap(devices.numpy.full((), value, dtype=dtype))


def counted(state: dict[str, Any]) -> float:
    """Count one step in the state and return the count."""
    step = state["step"]._array
    step += 1
    return float(step)


def descent(xp: Any, p: Any, g: Any, decay: float, up: bool, out: Any) -> Any:
    """Return the gradient to go down: turned round to go up, with weight decay; in `out` unless it is `g` itself."""
    if decay:
        xp.multiply(p, decay, out=out)
        return (xp.subtract if up else xp.add)(out, g, out=out)
    return xp.negative(g, out=out) if up else g


def move_towards(xp: Any, mean: Any, value: Any, share: float, work: Any) -> None:
    """Move a running mean by `share` of the way to a value."""
    xp.subtract(value, mean, out=work)
    work *= share
    mean += work


def mix_square(xp: Any, square: Any, value: Any, keep: float, work: Any) -> None:
    """Keep the share `keep` of a running mean of squares and take the rest from the square of a value."""
    xp.multiply(value, value, out=work)
    work *= 1 - keep
    square *= keep
    square += work
