"""Where numbers lie: array modules and devices, dtypes, storages with their versions.

- :mod:`~.device`: array modules, NumPy and CuPy; the one module that imports CuPy
- :mod:`~.dtype`: element types under PyTorch's names, and type promotion
- :mod:`~.elements`: numbers as elements of arrays, and what a dtype cannot hold
- :mod:`~.bfloat16`: bfloat16 on NumPy arrays, by ``ml_dtypes``
- :mod:`~.storage`: memory, the version counter, and how views lie in memory
- :mod:`~.allocator`: what becomes of memory that is freed
- :mod:`~.memory_format`: layouts and memory formats (``channels_last``)
"""
