"""D332: A mask hides what it should show: the past, or everything but the padding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy

from ....output.number_format import count
from ....records.records import Location, operator_name
from ...explanation import at
from ...nan.nan_producers import saved_values
from ...program_facts import Fact, WatchedProgram
from ...rule_registry import Rule
from ...watch import Watch

__all__ = ["InvertedMask"]

# An additive mask hides a place by this number or less: the least of a dtype, or minus infinity.
_HIDING = -1e4
_NEGATE = (
    "masked_fill() and key_padding_mask hide where the mask is True, scaled_dot_product_attention() shows: hand it the "
    "negation, ~mask."
)
_HELP = {"causal": _NEGATE, "padding": _NEGATE, "empty": "Leave empty samples out, or show one position of each."}


class WrongMask(NamedTuple):
    """The mask of an attention that is wrong.

    Attributes
    ----------
    kind : str
        ``'causal'``: each row but the last has weights behind the diagonal alone; ``'padding'``: all samples see one
        and the same token, and none of the others; ``'empty'``: a sample sees nothing.
    size : int
        How many positions there are; of an empty mask, how many samples see nothing.
    token : int
        The only one that is seen.
    """

    kind: str
    size: int
    token: int
    location: Location | None


class MaskWatch(Watch):
    """Looks at what attentions show."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._graphs = program.graphs
        self._least = program.limits.mask_length
        self.found: dict[Location | None, WrongMask] = {}

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        nodes = [link.node for link in self._graphs.of(task).values()]
        tokens: list[Any] | None = None
        for node in nodes:
            shown, fused = self._shown(node)
            if shown is None or shown.ndim < 2 or shown.shape[-1] < self._least:
                continue
            tokens = self._tokens(nodes) if tokens is None else tokens
            kind, size, token = _judged(shown, fused, tokens)
            if kind:
                line = self._adapter.location(node)
                self.found.setdefault(line, WrongMask(kind, size, token, line))

    def _shown(self, node: Any) -> tuple[Any, bool]:
        """Return which positions (..., query, key) an attention shows or None, and whether it is PyTorch's own."""
        name = operator_name(self._adapter.node_name(node))
        if name in ("Softmax", "SafeSoftmax"):  # SafeSoftmax is a part of attention that was not fused
            weights = saved_values(self._adapter, node).get("result")
            values = None if weights is None else self._adapter.to_host(weights)
            return (None if values is None or not numpy.isfinite(values).all() else values != 0), name != "Softmax"
        if not name.startswith("ScaledDotProduct"):
            return None, False
        saved = saved_values(self._adapter, node)
        mask = saved.get("attn_mask", saved.get("attn_bias"))
        values = None if mask is None else self._adapter.to_host(mask)
        return (values if values is None or values.dtype == bool else values > _HIDING), True

    def _tokens(self, nodes: Iterable[Any]) -> list[Any]:
        """Return the tokens (sample, position) that embeddings were given."""
        embeddings = (n for n in nodes if operator_name(self._adapter.node_name(n)) == "Embedding")
        given = (saved_values(self._adapter, node).get("indices") for node in embeddings)
        return [self._adapter.to_host(one) for one in given if one is not None and len(one.shape) == 2]


def _judged(shown: Any, fused: bool, tokens: Sequence[Any]) -> tuple[str, int, int]:
    """Return what is wrong with a mask, how many positions or samples there are, and the token it shows."""
    if _sees_only_ahead(shown):
        return "causal", int(shown.shape[-1]), 0
    for ids in tokens:
        keys = _keys_of(shown, ids.shape)
        if keys is not None and keys.any() and not keys.all():
            seen, hidden = ids[keys], ids[~keys]
            if (seen == seen[0]).all() and not (hidden == seen[0]).any() and len(numpy.unique(hidden)) > 1:
                return "padding", int(shown.shape[-1]), int(seen[0])
    if fused and shown.ndim > 2:
        nothing = int((~shown.reshape(len(shown), -1).any(axis=1)).sum())
        if nothing:
            return "empty", nothing, 0
    return "", 0, 0


def _sees_only_ahead(shown: Any) -> bool:
    """Whether all rows but the last show what is behind the diagonal alone; the last may show anything."""
    if shown.shape[-1] != shown.shape[-2]:
        return False
    rows = shown[..., :-1, :]
    ahead = numpy.triu(numpy.ones(shown.shape[-2:], dtype=bool), 1)[:-1]
    return bool(not (rows & ~ahead).any() and (rows & ahead).any())


def _keys_of(shown: Any, shape: tuple[int, ...]) -> Any:
    """Return which keys (sample, position) any head and query sees; None where the mask is none of such samples."""
    samples, length = shape
    if shown.shape[-1] != length or not samples or shown.size == 0 or shown.ndim < 3 or len(shown) % samples:
        return None
    return shown.reshape(samples, -1, length).any(axis=1)


INVERTED_MASKS = Fact("inverted masks", MaskWatch, lambda watch: tuple(watch.found.values()), backward=True)


class InvertedMask(Rule):
    """A mask hides what it should show."""

    code = "D332"
    title = "a mask that is inverted"
    severity = "silent-wrong"
    needs = (INVERTED_MASKS,)
    certainty = "likely"
    kind = "mask"
    what = """
        A boolean mask says which entries to hide for masked_fill() and as key_padding_mask, and which ones to show for
        scaled_dot_product_attention(): negated, it hides all that it should show. A causal mask then shows each
        position the later ones alone: a model that predicts the next token reads it off its input. One of padding shows
        the padding, the same token in every sample, and no other. A sample that a mask hides altogether has no result.
        """
    bad = """
        scores = gs.nn.Linear(4, 5)(gs.randn(2, 5, 4))
        past = gs.tril(gs.ones(5, 5)) == 1
        weights = gs.softmax(scores.masked_fill(past, -1e9), dim=-1)
        (weights @ gs.randn(2, 5, 3)).square().mean().backward()
        """
    good = """
        scores = gs.nn.Linear(4, 5)(gs.randn(2, 5, 4))
        past = gs.tril(gs.ones(5, 5)) == 1
        weights = gs.softmax(scores.masked_fill(~past, -1e9), dim=-1)
        (weights @ gs.randn(2, 5, 3)).square().mean().backward()
        """

    def judge(self, found: Iterable[WrongMask]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for one in found:
            yield f"the attention{at(one.location)} {_text(one)}\n  {_HELP[one.kind]}", one.location


def _text(one: WrongMask) -> str:
    if one.kind == "causal":
        return (
            f"gives each of the first {one.size - 1} of {one.size} positions weights for later positions alone: the "
            "causal mask is inverted"
        )
    if one.kind == "padding":
        return (
            f"sees token {one.token} in every sample, and no other of {one.size} positions: the padding mask is "
            "inverted"
        )
    return f"has a mask that hides all positions of {count(one.size, 'sample')}: no result comes of that"
