"""How a declared operator runs: compiled code for the common case, and the step-by-step form of everything else.

- :mod:`~.codegen`: writes an operator's function and its node class as source, and compiles them
- :mod:`~.general`: the step-by-step form: recording, other array modules, what listens
- :mod:`~.promotion`: the dtypes in which operands of different ones meet, by tables
- :mod:`~.saving`: what a call's node saves, with versions
- :mod:`~.forward_mode`: operators give their results tangents
- :mod:`~.inplace_and_out`: writes into memory that is already there: ``name_()`` and ``out=``
- :mod:`~.older_overloads`: the former order of arguments, with numbers between the tensors
- :mod:`~.array_errors`: an array module's complaints in PyTorch's words
- :mod:`~.bare_functions`: ``F`` on bare arrays: every operator's forward with the array module chosen
"""
