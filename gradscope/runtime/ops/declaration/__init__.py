"""How an operator is declared, and what stands beside a declaration.

- :mod:`~.registry`: ``operator(...)`` and the table of all operators
- :mod:`~.keywords`: PyTorch's other keywords: ``input=``, ``axis=``, ``keepdims=``
- :mod:`~.annotations`: ``Array``, ``Gradient``, ``Namespace``: what operators' code is given
- :mod:`~.samples`: sample arguments for the tests that every operator must pass
- :mod:`~.extremes`: extreme arguments: zeros of both signs, huge, infinite, NaN, ties
- :mod:`~.references`: references written out, for operators that no library has
- :mod:`~.stubs`: writes the type stubs of all functions and methods
- :mod:`~.examples`: examples for ``help()`` and the API reference, made from samples
"""
