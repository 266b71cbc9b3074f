"""The runtime core: tensors, graph, engine, operators and the points where instruments attach.

Nothing in here imports anything above it (:mod:`gradscope.autograd`, :mod:`gradscope.nn`, the instruments).
"""
