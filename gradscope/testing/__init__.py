"""For tests: assertions about values and gradients, and Hypothesis strategies.

:func:`assert_close`, :func:`assert_gradients` and :func:`make_tensor` need NumPy alone;
:mod:`gradscope.testing.strategies` needs Hypothesis once a strategy is made. :mod:`gradscope.testing.plugin` is for
pytest: fixtures, and by ``--gradscope-check`` failed tests are told what spoiled a gradient.

- :mod:`~.comparison`: ``assert_close``
- :mod:`~.gradients`: ``assert_gradients``
- :mod:`~.suspect_functions`: the custom Function that a wrong gradient goes through
- :mod:`~.torch_functions`: a function of PyTorch's tensors, checked as one of gradscope's
- :mod:`~.random_tensors`: ``make_tensor``
- :mod:`~.strategies`: shapes and tensors for Hypothesis
- :mod:`~.plugin`: fixtures and options of pytest
- :mod:`~.suite_recheck`: what ``--gradscope-check`` does
- :mod:`~.suite_watch`: what ``--gradscope-watch`` does
"""

from __future__ import annotations

import lazy_loader

# The names stand in ``__init__.pyi``. pytest loads the plugin in every environment where gradscope is installed: the
# runtime comes with the first name that is asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
