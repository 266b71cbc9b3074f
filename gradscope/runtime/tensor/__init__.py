"""The tensor: a bare array and what autograd knows of it, and everything that makes or converts one.

- :mod:`~.tensor`: the class ``Tensor``
- :mod:`~.views`: which base a view belongs to, and what a write in place does to the history of both
- :mod:`~.inplace_checks`: which in-place writes are refused
- :mod:`~.tangents`: which tensor carries a forward-mode tangent, and in which dual level
- :mod:`~.math_bits`: the conjugate and the negative bit: lazy ``conj()`` and ``.imag``
- :mod:`~.gradient_holder`: ``grad``, ``retain_grad`` and tensor hooks
- :mod:`~.creation`: factories: ``tensor``, ``zeros``, ``arange``, ``*_like``
- :mod:`~.inclusive_range`: ``range``, which is deprecated
- :mod:`~.tensor_types`: ``gs.FloatTensor`` and its like, and the names of types
- :mod:`~.from_python`: numbers and nested lists as arrays
- :mod:`~.conversions`: ``item``, ``tolist``, ``numpy``, copies and pickles
- :mod:`~.formatting`: ``repr``: how a tensor prints
- :mod:`~.overrides`: ``__torch_function__`` and Tensor subclasses
"""
