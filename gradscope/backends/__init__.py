"""PyTorch's switches of libraries that this runtime does not use: scripts may set them, and nothing changes.

Each library is a module, as in PyTorch (``import gradscope.backends.cudnn as cudnn``); its ``flags()`` sets switches
for the length of a block. One switch is heeded: ``mkldnn.enabled`` says whether a layer of a
recurrent network is one node.

- :mod:`~.cuda`: CUDA, and the libraries that PyTorch multiplies and attends with there
- :mod:`~.cudnn`: convolutions and recurrent networks on CUDA
- :mod:`~.mkl`: Intel's products and transforms
- :mod:`~.mkldnn`: oneDNN, with the switch that is heeded
- :mod:`~.mps`: Apple's Metal
- :mod:`~.nnpack`: convolutions on phones
- :mod:`~.openmp`: threads
- :mod:`~.opt_einsum`: the order of products in ``einsum``
- :mod:`~.switches`: the modules and flags that those are made of

Examples
--------
>>> import gradscope as gs
>>> gs.backends.cudnn.benchmark = False
>>> with gs.backends.cudnn.flags(enabled=True, deterministic=True):
...     gs.backends.cudnn.deterministic
True
>>> gs.backends.cudnn.deterministic, gs.backends.mps.is_available()
(False, False)
"""

from __future__ import annotations

from . import cuda, cudnn, mkl, mkldnn, mps, nnpack, openmp, opt_einsum

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum"]
