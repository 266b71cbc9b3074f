"""D335: Two weights that were tied are two parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy

from ....output.number_format import format_shape
from ....records.records import Location
from ...explanation import at
from ...program_facts import Fact, WatchedProgram
from ...rule_registry import Rule
from ...training.layer_weights import weight_of
from ...watch import Watch

__all__ = ["TyingLost"]


@dataclass(frozen=True)
class EqualWeights:
    """An embedding and a linear layer whose weights were one, or start equal, and are two parameters.

    Attributes
    ----------
    embedding, linear : str
        The names of the parameters.
    shape : tuple of int
        Of both.
    made : Location or None
        Where the later one was made.
    replaced : bool
        Whether the linear layer holds a parameter that the embedding was made with, and the embedding another one.
    """

    embedding: str
    linear: str
    shape: tuple[int, ...]
    made: Location | None
    replaced: bool = False


class TyingWatch(Watch):
    """Compares the weights of embeddings and linear layers when the first backward has reached them."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._recorder = program.ledger.recorder
        self._compared: set[int] = set()
        self.found: tuple[EqualWeights, ...] = ()

    def task_finished(self, task: Any) -> None:
        """Compare the weights of each model once."""
        for label, root in self._recorder.roots().items():
            if id(root) not in self._compared and self._is_reached(root):
                self._compared.add(id(root))
                self.found += tuple(self._equal_in(label, root))

    def _is_reached(self, root: Any) -> bool:
        return any(self._adapter.leaf_grad(tensor) is not None for _, tensor in self._adapter.named_parameters(root))

    def _equal_in(self, label: str, root: Any) -> Iterator[EqualWeights]:
        parts = self._adapter.named_modules(root)
        embeddings, linears = (self._weights_of(parts, kind) for kind in ("Embedding", "Linear"))
        for path, embedding in embeddings:
            for other, linear in linears:
                if not self._are_two(embedding, linear):
                    continue
                replaced = _is_assigned(self._recorder.made_at(linear), path)
                if replaced or self._is_copy(embedding, linear):
                    name, tied = (f"{label}.{place}.weight".lstrip(".") for place in (path, other))
                    made = self._recorder.made_at(embedding) or self._recorder.made_at(linear)
                    yield EqualWeights(name, tied, tuple(linear.shape), made, replaced)

    def _weights_of(self, parts: Iterable[tuple[str, Any]], kind: str) -> list[tuple[str, Any]]:
        found = ((path, weight_of(self._adapter, part, kind)) for path, part in parts)
        return [(path, weight) for path, weight in found if weight is not None]

    def _are_two(self, one: Any, other: Any) -> bool:
        """Whether two weights of one shape both learn, in two memories."""
        if tuple(one.shape) != tuple(other.shape) or self._adapter.address(one) == self._adapter.address(other):
            return False
        return self._adapter.leaf_grad(one) is not None and self._adapter.leaf_grad(other) is not None

    def _is_copy(self, one: Any, other: Any) -> bool:
        """Whether two weights have the same numbers, which are not all one number."""
        values = self._adapter.to_host(one)
        return bool(values.size > 1 and numpy.array_equal(values, self._adapter.to_host(other)) and numpy.ptp(values))


def _is_assigned(made: Location | None, path: str) -> bool:
    """Whether the line that made a parameter assigns to the attribute that another module has the name of."""
    attribute = path.rpartition(".")[2]
    source = "" if made is None else made.source or ""
    return bool(attribute) and re.match(rf"\s*self\.{re.escape(attribute)}\s*=[^=]", source) is not None


EQUAL_WEIGHTS = Fact("equal weights", TyingWatch, lambda watch: watch.found, backward=True)


class TyingLost(Rule):
    """Two weights that were tied are two parameters."""

    code = "D335"
    title = "a weight tying that was lost"
    severity = "silent-wrong"
    needs = (EQUAL_WEIGHTS,)
    kind = "tying"
    what = """
        An embedding and an output layer start with the same numbers, and are two parameters: each gets its own
        gradient, and they part with the first step. Whoever ties weights must have both modules hold one parameter; a
        copy, a new Parameter or an initialisation that assigns one ends that.
        """
    bad = """
        class Model(gs.nn.Module):
            def __init__(self):
                super().__init__()
                self.embed, self.decoder = gs.nn.Embedding(6, 4), gs.nn.Linear(4, 6, bias=False)
                self.decoder.weight = gs.nn.Parameter(self.embed.weight.detach().clone())

            def forward(self, tokens):
                return self.decoder(self.embed(tokens))

        model, tokens = Model(), gs.arange(6)
        gs.nn.functional.cross_entropy(model(tokens), tokens).backward()
        """
    good = """
        class Model(gs.nn.Module):
            def __init__(self):
                super().__init__()
                self.embed, self.decoder = gs.nn.Embedding(6, 4), gs.nn.Linear(4, 6, bias=False)
                self.decoder.weight = self.embed.weight

            def forward(self, tokens):
                return self.decoder(self.embed(tokens))

        model, tokens = Model(), gs.arange(6)
        gs.nn.functional.cross_entropy(model(tokens), tokens).backward()
        """

    def judge(self, found: Iterable[EqualWeights]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for one in found:
            how = "start with the same numbers and are two parameters"
            after = "they part with the first step"
            if one.replaced:
                how = "were one parameter, until the embedding was given another"
                after = "they are no longer tied"
            text = (
                f"`{one.embedding}` and `{one.linear}`, of shape {format_shape(one.shape)}, {how}{at(one.made)}: "
                f"{after}\n"
                "  To tie them, assign the parameter itself, last: decoder.weight = embedding.weight."
            )
            yield text, one.made
