"""What is measured: each workload is one function that takes the library, so that every library runs the same code.

========================  ==========================================================================
:mod:`workloads.case`     what a workload is, and :data:`CASES`, where every one of them is found
:mod:`workloads.models`   the networks, written once for every module that speaks PyTorch's API
:mod:`workloads.macro`    real layers: training steps, attention, large element-wise work
:mod:`workloads.micro`    small tensors: what one operator, hook, view or optimizer step costs
:mod:`workloads.library`  special functions and linear algebra
========================  ==========================================================================
"""

from workloads import library, macro, micro  # noqa: F401  (importing them fills CASES)
from workloads.case import CASES, Case, Work

__all__ = ["CASES", "Case", "Work"]
