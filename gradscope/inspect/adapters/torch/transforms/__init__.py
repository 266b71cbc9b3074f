"""What PyTorch puts between a program and its operators: transforms, tracing, compiling, modes.

- :mod:`~.functorch`: values inside of ``torch.func``'s transforms
- :mod:`~.torch_compile`: what is inside of what it has compiled, and how Dynamo is kept out of here
- :mod:`~.jit_tracing`: how nothing of gradscope's comes into a trace
- :mod:`~.dispatch_modes`: modes, put aside while an instrument looks
"""

from __future__ import annotations
