"""The API of PyTorch 0.1, on the same engine; what programs import of it is :mod:`gradscope.autograd.legacy`.

- :mod:`~.variable`: ``Variable(data, requires_grad, volatile)``
- :mod:`~.tensor_attributes`: what every tensor and node has of it: ``volatile``, ``creator``, ``previous_functions``
- :mod:`~.instance_function`: functions that are used through instances: ``F(args)(x)``
- :mod:`~.stochastic_functions`: ``Multinomial``, ``Bernoulli``, ``Normal``, whose draws take a ``reinforce(reward)``
- :mod:`~.sampling`: which tensors draw so in their own ``multinomial()`` and ``bernoulli()``

It stands on general points of the floors below:

- a tensor may be inert (``state.INERT``): what is computed from it is inert too, and not recorded
- a tensor may be connected (``state.CONNECTED``): it has a node, though it does not require grad
- a node may be without seed (``Node.seedless``): backward starts there without a gradient
- a tensor may have a sampler, which draws in the place of the operators (``runtime/ops/random/random.py``)
- a class may have attributes that load when they are first used (``runtime/late_attributes.py``), and ``backward()``
  other names of its keywords; ``gradscope/__init__.py`` enters both
"""
