"""D348: requires_grad was set on a module, which freezes nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from ....output.number_format import count
from ....records.records import Location
from ....source.call_sites import user_frames
from ...explanation import at
from ...no_gradient.source_suspects import assigned_at
from ...program_facts import Fact, WatchedProgram
from ...rule_registry import Rule
from ...watch import Watch

__all__ = ["FrozenByAttribute"]


class FreezingAttributes(Watch):
    """Looks for modules that have an attribute by which nobody asks."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._recorder = program.ledger.recorder
        self.found: dict[int, tuple[str, int, Location | None]] = {}

    def module_returned(self, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Look at its attributes, and whether it has parameters that are trained all the same."""
        if vars(module).get("requires_grad", True) is not False or id(module) in self.found:
            return
        trained = [one for _, one in self._adapter.named_parameters(module) if one.requires_grad]
        if trained:
            name = f"{type(module).__name__} `{self._recorder.path_of(module)}`"
            lines = assigned_at("requires_grad", list(user_frames(sys._getframe())))
            line = lines[0] if len(lines) == 1 else None
            self.found[id(module)] = name.removesuffix(" ``"), len(trained), line


ATTRIBUTES = Fact("freezing attributes", FreezingAttributes, lambda watch: tuple(watch.found.values()), forward=True)


class FrozenByAttribute(Rule):
    """requires_grad was set on a module, which freezes nothing."""

    code = "D348"
    title = "a module that was to be frozen and is not"
    severity = "silent-wrong"
    needs = (ATTRIBUTES,)
    kind = "no gradient"
    what = """
        A module has no requires_grad: `module.requires_grad = False` makes an attribute that nobody reads, and its
        parameters are trained. The method requires_grad_(False) sets that of each parameter.
        """
    bad = """
        model = gs.nn.Sequential(gs.nn.Linear(2, 3), gs.nn.Linear(3, 1))
        model[0].requires_grad = False
        model(gs.randn(4, 2)).sum().backward()
        """
    good = """
        model = gs.nn.Sequential(gs.nn.Linear(2, 3), gs.nn.Linear(3, 1))
        model[0].requires_grad_(False)
        model(gs.randn(4, 2)).sum().backward()
        """

    def judge(self, found: Iterable[tuple[str, int, Location | None]]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for name, trained, line in found:
            text = (
                f"requires_grad was set to False on the module {name}{at(line)}, where it is an attribute that nobody "
                f"reads: {count(trained, 'parameter')} of it require{'s' * (trained == 1)} grad all the same\n"
                "  Call module.requires_grad_(False)."
            )
            yield text, line
