"""The runtime core: tensors, graph, engine, operators and the points where instruments attach.

Nothing in here imports anything above it (:mod:`gradscope.autograd`, :mod:`gradscope.nn`, the instruments), and its
floors import downwards: ops, engine, tensor and graph, kernels, memory.

- :mod:`~.memory`: devices, dtypes, storages and their versions
- :mod:`~.kernels`: formulas on bare arrays that engine and operators share
- :mod:`~.tensor`: the tensor, views, factories, conversions
- :mod:`~.graph`: nodes, edges, saved tensors, hooks
- :mod:`~.engine`: backward passes
- :mod:`~.ops`: every operator
- :mod:`~.dispatch`: what lower floors must reach upwards, which the catalogue of operators fills in
- :mod:`~.events`: the instrumentation points
- :mod:`~.call_sites`: where in the program something happened
- :mod:`~.modes`: ``no_grad``, anomaly mode, saved-tensor hooks and other modes
- :mod:`~.state`: the flags that every operator checks
- :mod:`~.late_attributes`: attributes of tensors and nodes that a floor above defines
- :mod:`~.autocast`: which operators run in which precision
- :mod:`~.errors`: the runtime's own exceptions
- :mod:`~.user_warnings`: warnings at the program's own line
- :mod:`~.names`: the names that ``gradscope`` itself has, which load all of this
- :mod:`~.settings`: settings that scripts begin with, kept and read back
"""

import warnings as _warnings

from ..program_files import COMPUTING as _COMPUTING

_warnings.filterwarnings("ignore", category=RuntimeWarning, module=_COMPUTING)

from . import names as names  # noqa: E402 - every part of the package may count on all operators
