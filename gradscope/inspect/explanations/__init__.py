"""Explanations: why a parameter has no gradient, where a NaN comes from, what holds the memory, and others.

Each question is a function that returns frozen data with a sentence (``str()``), a Rich table (``table()``), a
dictionary (``to_dict()``) and, where people look rather than read, a picture (``plot()``). They are reached as names of
:mod:`gradscope.inspect`.
"""
