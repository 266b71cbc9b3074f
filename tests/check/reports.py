"""Findings and reports for the tests of what is made of them."""

from gradscope.check import Finding, Report, ScriptResult, Site, TensorDescription
from gradscope.inspect import Location


def finding(**changes):
    facts = {
        "code": "GS101",
        "message": "`out` (float32 [3]) was modified in place, and ExpBackward0 still needs it",
        "sites": (
            Site("written", Location("train.py", 12, "f", "out += skip"), "written here by add_"),
            Site("saved", Location("train.py", 9, "f", "out = x.exp()"), "saved here"),
        ),
        "tensor": TensorDescription("out", (3,), "float32", "ExpBackward0", "result"),
        "node": "ExpBackward0",
        "saved_version": 0,
        "current_version": 1,
        "help": "write `out = out + skip`",
    }
    return Finding(**{**facts, **changes})


def report(**changes):
    facts = {
        "findings": (),
        "result": ScriptResult("train.py", (), None, 0),
        "status": 0,
        "frameworks": ("gradscope",),
        "backwards": 1,
        "writes": 2,
        "suppressed": 0,
        "known": 0,
        "unseen": (),
    }
    return Report(**{**facts, **changes})
