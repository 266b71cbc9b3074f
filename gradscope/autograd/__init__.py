"""Automatic differentiation: backward, grad, user-defined functions, the graph, and the checks of gradients.

- :mod:`~.function`: what a user derives from to write a derivative
- :mod:`~.function_calls`: what happens around the forward of one
- :mod:`~.function_context`: ``ctx``, as forward, backward and jvp see it
- :mod:`~.once_differentiable`: a backward that cannot be differentiated itself
- :mod:`~.graph`: nodes and edges from outside; hooks on several tensors; what is saved
- :mod:`~.functional`: ``vjp``, ``jvp``, ``jacobian``, ``hessian``, ``vhp`` and ``hvp``
- :mod:`~.functional_checks`: the checks of their arguments, and strict mode
- :mod:`~.forward_ad`: dual tensors
- :mod:`~.gradcheck`: ``gradcheck`` and ``gradgradcheck``
- :mod:`~.gradcheck_forward`: the same for forward mode
- :mod:`~.numerical_jacobian`: the Jacobians they compare: finite differences and backward
- :mod:`~.jacobian_mismatch`: the error that shows where two of them differ
- :mod:`~.legacy`: names of PyTorch 0.1, for imports
- :mod:`~.v01`: how those work
"""

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
