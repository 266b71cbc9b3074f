"""For tests: assertions about values and gradients, and Hypothesis strategies.

:func:`assert_close`, :func:`assert_gradients` and :func:`make_tensor` need NumPy alone;
:mod:`gradscope.testing.strategies` needs Hypothesis once a strategy is made. :mod:`gradscope.testing.plugin` is for
pytest: fixtures, and by ``--gradscope-check`` failed tests are told what spoiled a gradient.
"""

from __future__ import annotations

from .comparison import assert_close, default_tolerances
from .gradients import assert_gradients
from .random_tensors import make_tensor

__all__ = ["assert_close", "assert_gradients", "default_tolerances", "make_tensor"]
