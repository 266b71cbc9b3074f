"""Derivatives as functions of functions, under the names of ``torch.func``.

Each transform takes a function of tensors (or of dicts, lists and tuples of them) and returns another one. They stand
on the recorded graph and on forward mode, so they nest in each other and in ordinary backwards.

- :mod:`~.grad_vjp_jvp`: ``grad``, ``vjp``, ``jvp``, ``linearize``
- :mod:`~.jacobians`: ``jacrev``, ``jacfwd``, ``hessian``
- :mod:`~.batches`: ``vmap``
- :mod:`~.batch_norm_replacement`: batch normalisation without running statistics
- :mod:`~.pytrees`: dicts, lists and tuples of tensors as arguments and results

Examples
--------
>>> import gradscope as gs
>>> from gradscope.func import grad, hessian, vmap
>>> grad(lambda x: x**3)(gs.tensor(2.0))
tensor(12.)
>>> vmap(grad(grad(lambda x: x**3)))(gs.tensor([1.0, 2.0]))
tensor([ 6., 12.])
>>> hessian(lambda x: x.prod())(gs.tensor([1.0, 2.0]))
tensor([[0., 1.],
        [1., 0.]])
"""

from __future__ import annotations

from ..nn.utils.stateless import functional_call
from .batch_norm_replacement import replace_all_batch_norm_modules_
from .batches import stack_module_state, vmap
from .grad_vjp_jvp import grad, grad_and_value, jvp, linearize, vjp
from .jacobians import hessian, jacfwd, jacrev

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
