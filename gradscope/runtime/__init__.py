"""The runtime core: tensors, graph, engine, operators and the points where instruments attach.

Nothing in here imports anything above it (:mod:`gradscope.autograd`, :mod:`gradscope.nn`, the instruments).
"""

import warnings as _warnings

# NumPy warns of overflow and invalid values where PyTorch computes inf and nan in silence; only of our own lines.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"gradscope\.(amp|nn|optim|runtime)")
