"""What ranks hold before an optimizer's step, and what happens before it and may explain that.

- :mod:`~.backward_log`: which parameters the backwards reached
- :mod:`~.call_lines`: at which lines modules, backwards and steps are called
- :mod:`~.forward_log`: which forwards no backward follows: the iterations that are skipped
- :mod:`~.parameter_writes`: which parameters others than the optimizer write
- :mod:`~.step_looks`: what a rank holds when its optimizer is about to step
- :mod:`~.training_loop`: the loop around backwards and steps, and whether the program has left it
"""
