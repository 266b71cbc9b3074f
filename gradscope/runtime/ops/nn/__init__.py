"""Operators of neural networks.

- :mod:`~.activations`: rectifiers, sigmoids, softmax
- :mod:`~.rrelu_and_alpha_dropout`: ``rrelu``, and dropout that keeps mean and variance
- :mod:`~.normalization`: batch, layer, group and RMS norm; dropout
- :mod:`~.instance_norm`: ``batch_norm`` and ``instance_norm`` with PyTorch's older arguments
- :mod:`~.convolution`: convolution over any number of dimensions
- :mod:`~.pooling`: maxima and means of windows
- :mod:`~.adaptive_pooling`: pooling to a given size
- :mod:`~.unpooling`: unpooling, and pooling over windows of random position
- :mod:`~.attention`: scaled dot-product attention
- :mod:`~.recurrent`: Elman networks, LSTM, GRU: all layers, and single cells
- :mod:`~.recurrent_layers`: one direction of one layer of them, in one node
- :mod:`~.recurrent_steps`: one step of them, composed of operators, and its derivative
- :mod:`~.packed_sequence`: sequences of several lengths without padding
- :mod:`~.embedding`: rows of a table, one by one or in bags
- :mod:`~.older_functional_forms`: functions that stand both in the package and in ``nn.functional``
"""
