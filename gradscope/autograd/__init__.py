"""Automatic differentiation: backward, grad, user-defined functions, the graph, and the checks of gradients."""

from __future__ import annotations

from ..runtime import modes as grad_mode
from ..runtime.engine.backward import backward, grad, queue_callback
from ..runtime.modes import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
)
from . import forward_ad, function, functional, graph, legacy
from .function import Function
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .v01.variable import Variable

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "legacy",
    "no_grad",
    "queue_callback",
    "set_detect_anomaly",
    "set_grad_enabled",
]

anomaly_mode = grad_mode
variable = Variable
