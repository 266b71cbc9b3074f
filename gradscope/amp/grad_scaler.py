"""Losses multiplied by a factor, so that small gradients are not rounded to zero in float16.

References
----------
P. Micikevicius and others, "Mixed precision training", ICLR 2018, section 3.2.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

from ..runtime import events
from ..runtime.memory import device as devices
from ..runtime.memory import dtype as dtypes
from ..runtime.modes import no_grad
from ..runtime.tensor.creation import full
from ..runtime.tensor.tensor import Tensor
from ..runtime.user_warnings import warn

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """How far the gradients of an optimizer have come since the last ``update()``."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses, unscales gradients before a step, and leaves the step out where a gradient is not finite.

    Parameters
    ----------
    device : str
        The device type of the losses.
    init_scale : float
        The first factor.
    growth_factor : float
        Multiplies the factor after `growth_interval` steps in a row without an infinite gradient.
    backoff_factor : float
        Multiplies it after a step that was left out.
    enabled : bool
        False makes all of it do nothing, and :meth:`step` the optimizer's.

    Raises
    ------
    AssertionError
        If a factor is on the wrong side of 1.

    See Also
    --------
    autocast

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.ones(1))
    >>> optimizer, scaler = gs.optim.SGD([w], lr=0.5), gs.amp.GradScaler("cpu", init_scale=8.0)
    >>> scaler.scale((w * w).sum()).backward()
    >>> w.grad
    tensor([16.])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w
    Parameter containing:
    tensor([0.], requires_grad=True)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not devices.cuda_is_available():
            warn("GradScaler is enabled, but CUDA is not available.  Disabling.")
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError(f"The growth factor must be > 1.0.\nIt is {growth_factor}.")
        if backoff_factor >= 1.0:
            raise AssertionError(f"The backoff factor must be < 1.0.\nIt is {backoff_factor}.")
        self._init_scale = init_scale
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_fresh_state)

    # --- scaling ---

    def scale(self, outputs: Any) -> Any:
        """Return a tensor, or the tensors of an iterable, times the factor.

        Raises
        ------
        ValueError
            For anything else.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._factor_on(outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError(f"outputs must be a Tensor or an iterable of Tensors\nThis is {type(outputs).__name__}.")

    def _factor_on(self, device: Any) -> Tensor:
        if self._scale is None:
            self._scale = full((), self._init_scale, dtype=dtypes.float32, device=device)
            self._growth_tracker = full((), self._init_growth_tracker, dtype=dtypes.int32, device=device)
        return self._scale.to(device)

    def _need_scale(self, caller: str) -> tuple[Tensor, Tensor]:
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(
                f"Attempted {caller} but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration.\nCall scaler.scale(loss).backward() first."
            )
        return self._scale, self._growth_tracker

    # --- unscaling ---

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer by the factor: before they are clipped or looked at.

        :meth:`step` does it otherwise.

        Raises
        ------
        RuntimeError
            If they are divided already, or :meth:`step` has been called.
        """
        if not self._enabled:
            return
        scale, _ = self._need_scale("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update().\nCall it once a step."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().\nCall it before.")
        inverse = scale.double().reciprocal().float()
        state["found_inf_per_device"] = self._unscale_gradients(optimizer, inverse)
        state["stage"] = OptState.UNSCALED

    def _unscale_gradients(self, optimizer: Any, inverse: Tensor | None) -> dict[Any, Tensor]:
        """Multiply gradients by `inverse`, unless it is None; return, for each device, whether one is not finite."""
        found: dict[Any, Tensor] = {}
        with no_grad():
            for parameter in (p for group in optimizer.param_groups for p in group["params"]):
                grad = parameter.grad
                if grad is None:
                    continue
                if inverse is not None and grad.dtype is dtypes.float16:
                    raise ValueError(
                        "Attempting to unscale FP16 gradients.\nKeep the parameters in float32: autocast casts them."
                    )
                if grad.device not in found:
                    found[grad.device] = full((), 0.0, dtype=dtypes.float32, device=grad.device)
                _note_not_finite(found[grad.device], grad)
                if inverse is not None:
                    grad.mul_(inverse.to(grad.device))
        return found

    # --- stepping ---

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients of an optimizer, unless that is done, and let it step if all of them are finite.

        Further arguments are the optimizer's, whose result is returned: None where the step is left out.

        Raises
        ------
        RuntimeError
            If it has been called since the last :meth:`update`, or with a closure.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError(
                "Closure use is not currently supported if GradScaler is enabled.\n"
                "Compute the loss before, or make the scaler with enabled=False."
            )
        self._need_scale("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().\nCall update() in between.")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_with_scale(optimizer, state, args, kwargs)
            state["stage"] = OptState.STEPPED
            return result
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        found = state["found_inf_per_device"]
        if not found:
            raise AssertionError(
                "No inf checks were recorded for this optimizer.\nNone of its parameters has a gradient."
            )
        result = None if any(flag.item() for flag in found.values()) else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_with_scale(self, optimizer: Any, state: dict[str, Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Let an optimizer step that unscales by itself: it is told the factor and what is not finite."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near "
                "future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and "
                "let the optimizer use them directly.",
                FutureWarning,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        scale, _ = self._need_scale("step")
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        given = getattr(optimizer, "grad_scale", None)
        if state["stage"] is not OptState.UNSCALED:
            given = scale if given is None else scale * given
        optimizer.grad_scale = given
        optimizer.found_inf = sum(flag.to(scale.device) for flag in state["found_inf_per_device"].values())
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        found = self._unscale_gradients(optimizer, None)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    # --- the factor ---

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adjust the factor after the steps of all optimizers; or set it.

        Raises
        ------
        AssertionError
            If no gradients have been looked at, or `new_scale` is a tensor that does not fit.
        """
        if not self._enabled:
            return
        scale, tracker = self._need_scale("update")
        if new_scale is not None:
            self._set_scale(scale, new_scale)
        else:
            states = self._per_optimizer_states.values()
            found = [flag.to(scale.device) for s in states for flag in s["found_inf_per_device"].values()]
            if not found:
                raise AssertionError(
                    "No inf checks were recorded prior to update.\nCall scaler.step(optimizer) or unscale_() before."
                )
            self._adjust(scale, tracker, sum(found[1:], found[0]))
        self._per_optimizer_states = defaultdict(_fresh_state)

    def _set_scale(self, scale: Tensor, new_scale: float | Tensor) -> None:
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
            return
        tensor = isinstance(new_scale, Tensor)
        if not tensor or new_scale.device.type != self._device or new_scale.numel() != 1 or new_scale.requires_grad:
            raise AssertionError(
                "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                f"requires_grad=False.\nIt is {new_scale!r}."
            )
        scale.copy_(new_scale)

    def _adjust(self, scale: Tensor, tracker: Tensor, found: Tensor) -> None:
        """Shrink or grow the factor, on its device: nothing waits for it."""
        module = devices.array_module(scale._array)
        infinite = found._array > 0
        grown = scale._array * scale._dtype.type(self._growth_factor)
        count = module.where(infinite, 0, tracker._array + 1)
        due = count == self._growth_interval
        kept = module.where(due & module.isfinite(grown), grown, scale._array)
        shrunk = scale._array * scale._dtype.type(self._backoff_factor)
        scale.copy_(Tensor._wrap(module.where(infinite, shrunk, kept)))
        tracker.copy_(Tensor._wrap(module.where(due, 0, count)))
        if events.wanted(events.OperatorRecorded):
            # PyTorch has an operator for it, which tells listeners that steps may have been left out.
            given, site = (scale, tracker, found), events.call_site_if_wanted()
            events.emit(events.OperatorRecorded(None, "_amp_update_scale_", given, (scale, tracker), site))

    # --- settings ---

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """Return the factor; 1.0 if nothing is scaled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """Return what the factor grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the factor grows by."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return what the factor shrinks by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the factor shrinks by."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return after how many steps in a row the factor grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many steps in a row the factor grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def is_enabled(self) -> bool:
        """Return whether anything is scaled."""
        return self._enabled

    # --- state ---

    def state_dict(self) -> dict[str, Any]:
        """Return factor and settings; nothing if it is not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` has returned.

        Raises
        ------
        RuntimeError
            If it is empty.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
                "\nDo not load it, or make this scaler with enabled=False."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update().\nCall update() first."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state


def _note_not_finite(flag: Tensor, grad: Tensor) -> None:
    """Write 1 into `flag` if a gradient is not finite."""
    array = grad._array
    module = devices.array_module(array)
    flag._array[...] = module.maximum(flag._array, ~module.isfinite(array).all())
