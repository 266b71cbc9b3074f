"""The adapter for PyTorch: hooks on nodes and modules, a function mode for call sites, one wrapper round the engine.

Importing this package does not import PyTorch; asking it for :class:`TorchAdapter` does. Nowhere else does gradscope
import PyTorch, and it asks only in programs that have.

- :mod:`~.torch_adapter`: the protocol's questions, answered
- :mod:`~.engine_wrapper`: ``backward()`` and ``grad()`` as tasks that observers hear of
- :mod:`~.observed_backward`: one such task: what is put on its nodes, and taken off
- :mod:`~.node_hooks`: how hooks come onto nodes cheaply, and which a node has
- :mod:`~.failed_node`: where a backward failed that nobody observed
- :mod:`~.forward_pass`: which nodes a call makes, on which line, in which module
- :mod:`~.operator_calls`: operators that have run
- :mod:`~.saved_tensors`: what a node saved, unpacked for nobody
- :mod:`~.saved_tensors_unpacked`: the same before PyTorch 2.10
- :mod:`~.writes`: writes in place: heard, refused, or suspected without listening
- :mod:`~.graph_freeing`: long graphs that would overflow the stack
- :mod:`~.data_parallel`: collectives, and checksums on the device
- :mod:`~.device`: what is looked at on a GPU, where it is
- :mod:`~.numpy_conversion`: tensors to arrays and back
- :mod:`~.passing_norms`: norms of what nodes are given while a program runs free, and what is not finite
- :mod:`~.transforms`: ``torch.func``, ``torch.compile``, ``torch.jit.trace`` and modes
- :mod:`~.torch_version`: the oldest PyTorch whose programs are opened
- :mod:`~.torch_spec`: shape, dtype and device as strings and tuples
- :mod:`~.warning_lines`: warnings at the user's line
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .torch_spec import TorchSpec
from .torch_version import check_version

if TYPE_CHECKING:
    from .torch_adapter import TorchAdapter  # it imports PyTorch

__all__ = ["TorchAdapter", "TorchSpec"]


def __getattr__(name: str) -> Any:
    if name != "TorchAdapter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import torch  # PyTorch is an optional dependency

    check_version(torch.__version__)
    from .torch_adapter import TorchAdapter  # it imports PyTorch

    return TorchAdapter
