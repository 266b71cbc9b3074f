"""What several scripts of these tests begin with."""

# A result that exp() needs is changed in place; the program goes on.
BUG = """\
import os, pathlib, sys, threading, time
import gradscope as gs

w = gs.ones(3, requires_grad=True)
y = w.exp()
z = y.sum()
y.add_(1)
try:
    z.backward()
except RuntimeError:
    pass
"""
