"""Data sets, samplers, and the loader that makes batches of them.

- :mod:`~.dataset`: samples by index, in order, joined, split
- :mod:`~.sampler`: the order of samples
- :mod:`~.loader`: ``DataLoader``
- :mod:`~.collation`: samples to a batch
- :mod:`~.worker`: what a worker process does
- :mod:`~.worker_pool`: what its loader does
- :mod:`~.distributed`: the samples of one process of several
"""

from __future__ import annotations

from .collation import default_collate, default_convert
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .loader import DataLoader
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .worker import WorkerInfo, get_worker_info

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerInfo",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]
