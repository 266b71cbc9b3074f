"""Every operator: families in rooms, and beside them how an operator is declared and how it runs.

- :mod:`~.declaration`: ``operator(...)``: how one is declared, and what stands beside a declaration
- :mod:`~.execution`: how a declared operator runs
- :mod:`~.families`: the list of all modules that declare operators
- :mod:`~.generated_source`: what a declaration becomes, as ``python -m gradscope.runtime.ops show mul`` prints it
- :mod:`~.derivative_text`: the derivative of a node as its declaration has it
- :mod:`~.plain_derivatives`: the same for reading, of those that one meets most in plain mathematics
- :mod:`~.pointwise`: elementwise operators
- :mod:`~.special`: special functions
- :mod:`~.reduce`: reductions, sorting, counting
- :mod:`~.shape`: views, joining and splitting, copies
- :mod:`~.index`: indexing, gathering and scattering
- :mod:`~.linalg`: linear algebra
- :mod:`~.signal`: Fourier transforms
- :mod:`~.random`: random numbers
- :mod:`~.nn`: operators of neural networks
- :mod:`~.losses`: losses and distances
- :mod:`~.vision`: images and volumes

``interface.pyi`` has the types of all functions and methods; :mod:`~.declaration.stubs` writes it.
"""
