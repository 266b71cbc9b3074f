"""Why a tensor has no gradient.

- :mod:`~.why_no_grad`: ``gi.why_no_grad``: where the way to the loss was lost
- :mod:`~.no_grad_reasons`: what the answer is made of
- :mod:`~.missing_gradients`: parameters that no backward gives a gradient
- :mod:`~.withheld_gradients`: a custom Function whose backward returns None
- :mod:`~.loss_terms`: what a loss is made of; terms without a graph
- :mod:`~.tensor_in_error`: which tensor an error is about
- :mod:`~.dataflow_ledger`: ``gi.ledger``: what is computed from what, written down
- :mod:`~.dataflow`: every operator that ran, recorded for backward or not
- :mod:`~.dataflow_entries`: what the ledger writes down
- :mod:`~.operator_log`: the operators of which it remembers a line, and makes an entry when somebody asks
- :mod:`~.lost_history`: where the way to the loss was lost, as a ledger saw it
- :mod:`~.source_suspects`: the same read in the source, without a ledger
- :mod:`~.detaching_calls`: what in a line takes a value out of the graph
- :mod:`~.program_slices`: how a value goes through a function
- :mod:`~.forward_functions`: the functions that a value may go through
- :mod:`~.unused_results`: results that never reach the loss
"""
