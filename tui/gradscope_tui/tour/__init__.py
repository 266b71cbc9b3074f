"""``gradscope tour``: a walk over a program with three mistakes, on the real screen.

- :mod:`~.guided_app`: the app with a strip that waits for the key it names
- ``program/three_mistakes.py``: the program, which is a script and no part of the package
"""
