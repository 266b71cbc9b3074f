"""The size of gradients from node to node: vanishing, exploding, zero.

- :mod:`~.gradient_flow`: ``gi.gradient_flow``: vanishing, exploding, dead
- :mod:`~.dead_units`: units of rectifiers that no example activates
- :mod:`~.amplification`: which operators make a gradient smaller or larger
- :mod:`~.zero_gradients`: which operators turn a gradient into zero
- :mod:`~.compiled_flow`: the same of what torch.compile has compiled
- :mod:`~.norm_trend`: where the norms of a backward vanish, explode, become zero or NaN
- :mod:`~.trend_findings`: the same as findings, each with its line
- :mod:`~.bounded_chain`: operators in a row that must make the gradient vanish
- :mod:`~.signal_fading`: values that fade on their way forward, layer by layer
- :mod:`~.backward_comparison`: two backwards side by side, and where they part
- :mod:`~.node_comparison`: two nodes side by side, in numbers
- :mod:`~.backward_replay`: a backward run again, node by node, beside the program
- :mod:`~.reshaping_operators`: the operators that only give elements another place
"""
