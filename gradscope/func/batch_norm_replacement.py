"""Batch normalisation without running statistics, which a function of a batch may not write."""

from __future__ import annotations

from ..nn import Module
from ..nn.modules.batchnorm import _BatchNorm

__all__ = ["replace_all_batch_norm_modules_"]


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let all batch normalisations in a module forget their running statistics, in place, and return the module.

    They take those of the batch from then on, in evaluation too: :func:`vmap` has no place to write one sample's into.

    Parameters
    ----------
    root : Module
        It may be a batch normalisation itself.

    See Also
    --------
    functional_call, vmap

    Examples
    --------
    >>> import gradscope as gs
    >>> net = gs.func.replace_all_batch_norm_modules_(gs.nn.Sequential(gs.nn.Linear(2, 3), gs.nn.BatchNorm1d(3)))
    >>> list(net.buffers()), net[1].track_running_stats
    ([], False)
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
