"""What a scheduler does to an optimizer, step by step, in either library."""

from __future__ import annotations

import collections
import copy
import math
from typing import Any

import pytest


def optimizer_of(lib: Any, kind: str = "SGD", *, tensor: bool = False) -> Any:
    """Return an optimizer with two groups."""
    groups = []
    for lr in (0.1, 0.04):
        parameter = lib.zeros(1, requires_grad=True)
        parameter.grad = lib.zeros(1)
        groups.append({"params": [parameter], "lr": lib.tensor(lr, dtype=lib.float64) if tensor else lr})
    return getattr(lib.optim, kind)(groups, **({"momentum": 0.5} if kind == "SGD" else {}))


def numbers(value: Any) -> Any:
    """Return a setting or a state with the tensors as numbers."""
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, collections.Counter):
        return dict(value)
    if isinstance(value, dict):
        return {key: numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [numbers(item) for item in value]
    return value


def close(a: Any, b: Any, where: str = "") -> None:
    """Assert that two nested values are the same, but for rounding."""
    if isinstance(a, dict):
        assert sorted(map(str, a)) == sorted(map(str, b)), where
        for key in a:
            close(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), where
        for number, pair in enumerate(zip(a, b, strict=True)):
            close(*pair, f"{where}[{number}]")
    elif isinstance(a, float):
        assert a == pytest.approx(b, rel=1e-9, abs=1e-12, nan_ok=True), where
    else:
        assert a == b, where


def metric(step: int) -> float:
    return 2.0 + math.cos(step) / (step + 1) + (step > 20) * 0.5


def advance(scheduler: Any, step: int) -> None:
    scheduler.optimizer.step()
    if type(scheduler).__name__ == "ReduceLROnPlateau":
        scheduler.step(metric(step))
    else:
        scheduler.step()


def seen(scheduler: Any) -> Any:
    keys = ("lr", "momentum", "betas", "initial_lr", "max_lr", "min_lr", "max_momentum", "base_momentum", "swa_lr")
    groups = [{key: group[key] for key in keys if key in group} for group in scheduler.optimizer.param_groups]
    last = None if not hasattr(scheduler, "_last_lr") else scheduler.get_last_lr()
    return numbers([groups, last, getattr(scheduler, "last_epoch", None)])


def follow(lib: Any, make: Any, steps: int = 36, resume: int = 15, **how: Any) -> list[Any]:
    """Return what a scheduler does, with its state saved and loaded in the middle, and its last state."""
    scheduler = make(lib, optimizer_of(lib, **how))
    found = [seen(scheduler)]
    for step in range(steps):
        if step == resume:
            saved = copy.deepcopy((scheduler.state_dict(), scheduler.optimizer.state_dict()))
            optimizer = optimizer_of(lib, **how)
            scheduler = make(lib, optimizer)
            scheduler.load_state_dict(saved[0])
            optimizer.load_state_dict(saved[1])
        advance(scheduler, step)
        found.append(seen(scheduler))
    return [*found, numbers(scheduler.state_dict())]
