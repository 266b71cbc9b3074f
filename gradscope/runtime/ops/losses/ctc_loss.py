"""Connectionist temporal classification: the likelihood of a sequence of labels under all its alignments.

The labels stand between blanks, ``2 S + 1`` states in all. A state is reached from itself, from the one before, and
from the one before that unless it is a blank or the same label. What comes after a state is what comes before it in the
reversed sequence, so that one recursion, over both at once, gives the probabilities of all states at all times.

References
----------
A. Graves, S. Fernández, F. Gomez, J. Schmidhuber, "Connectionist temporal classification: labelling unsegmented
sequence data with recurrent neural networks", ICML 2006.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from operator import index

import numpy

from ... import autocast, state
from ...memory import device
from ...memory.dtype import scalar_type
from ...tensor import creation
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Cases, Gradient, Ints, Make, Namespace, Sizes
from ..declaration.extremes import substituted
from ..declaration.registry import OPERATORS, PUBLIC, operator, public
from ..execution.array_errors import refuse_kinds
from ..execution.bare_functions import array_operators
from .elementwise_losses import MEAN, NONE

# The logarithm of no probability: a number, for the difference of two of them is one as well.
_NEVER = -1e30
_HARDLY = -1e29


class _Chains:
    """The states of all examples, as index arrays on the device of the scores.

    ``labels`` (N, L) is the class of each state; ``starts`` and ``ends`` (N, L) what it costs to begin and to end
    there; ``real`` (N, L) says which states an example has and ``heard`` (T, N) when; ``mirror`` (N, L) and
    ``mirrored_times`` (T, N) are the state and the time in the reversed sequence.
    """

    def __init__(
        self, scores: Array, targets: Array, inputs: Sequence[int], lengths: Sequence[int], blank: int
    ) -> None:
        xp = self.xp = device.array_module(scores)
        self.kind, (times, self.count, _) = scores.dtype, scores.shape
        longest = max(lengths)
        state, time = xp.arange(2 * longest + 1)[None, :], xp.arange(times)[:, None]
        lasts = 2 * xp.asarray(list(lengths), dtype="int64")[:, None]
        labels = xp.full((self.count, 2 * longest + 1), blank, dtype="int64")
        labels[:, 1::2] = self._padded(targets, lengths, longest)
        self.real = state <= lasts
        self.labels = xp.where(self.real, labels, blank)
        self.starts = self.cost(state <= xp.minimum(lasts, 1))
        self.ends = self.cost(self.real & (state >= lasts - 1))
        self.mirror = xp.maximum(lasts - state, 0)
        self.last_time = xp.asarray(list(inputs), dtype="int64") - 1
        self.mirrored_times = xp.maximum(self.last_time[None, :] - time, 0)
        self.heard = time <= self.last_time[None, :]

    def _padded(self, targets: Array, lengths: Sequence[int], longest: int) -> Array:
        """Return the targets as a matrix with a row for each example."""
        if targets.ndim == 2 or not longest:
            return targets[:, :longest] if longest else targets.reshape(-1)[:0]
        offsets = self.xp.asarray([0, *accumulate(lengths)][:-1], dtype="int64")
        return targets[self.xp.minimum(offsets[:, None] + self.xp.arange(longest), targets.size - 1)]

    def cost(self, allowed: Array) -> Array:
        """Return 0 for what is allowed, and the logarithm of no probability for what is not."""
        return self.xp.where(allowed, 0.0, _NEVER).astype(self.kind)

    def skips(self, labels: Array) -> Array:
        """Return what it costs to come to each state from the last but one."""
        allowed = self.xp.zeros(labels.shape, dtype=bool)
        allowed[:, 3::2] = labels[:, 3::2] != labels[:, 1:-2:2]
        return self.cost(allowed)

    def everywhere(self, array: Array) -> Array:
        """Return a matrix of indices for all times or all states, (T, N, L)."""
        shape = (*self.heard.shape, self.labels.shape[1])
        return self.xp.broadcast_to(array[None] if array.shape == shape[1:] else array[:, :, None], shape)


def _recursion(scores: Array, starts: Array, skips: Array, never: Array, F: Namespace) -> list[Array]:
    """Return for each time the log-probability of all ways to each state; scores are (T, N, L)."""
    reached = [scores[0] + starts]
    for time in range(1, scores.shape[0]):
        before = F.cat([never, reached[-1]], 1)
        reached.append(_log_sum(reached[-1], before[:, 1:-1], before[:, :-2] + skips, F) + scores[time])
    return reached


def _log_sum(a: Array, b: Array, c: Array, F: Namespace) -> Array:
    """Return ``log(exp(a) + exp(b) + exp(c))``: many times faster than logaddexp, which takes one number at a time."""
    highest = F.maximum(F.maximum(a, b), c)
    return F.log(F.exp(a - highest) + F.exp(b - highest) + F.exp(c - highest)) + highest


def _state_scores(log_probs: Array, labels: Array, F: Namespace) -> Array:
    # A score of minus infinity would make differences of two of them NaN.
    return F.threshold(F.gather(log_probs, 2, labels), _NEVER, _NEVER)


def _ctc(
    xp: Namespace,
    log_probs: Array,
    targets: Array,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
    blank: int = 0,
    zero_infinity: bool = False,
) -> Array:
    refuse_kinds("ctc_loss_cpu", log_probs, "biuc")
    if log_probs.dtype.itemsize < 4:
        kind = scalar_type(log_probs.dtype)
        raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{kind}'\nConvert the scores with .float().")
    F, chains = array_operators(xp), _Chains(log_probs, targets, input_lengths, target_lengths, blank)
    scores = _state_scores(log_probs, chains.everywhere(chains.labels), F)
    never = xp.full((chains.count, 2), _NEVER, dtype=chains.kind)
    reached = xp.stack(_recursion(scores, chains.starts, chains.skips(chains.labels), never, F))
    final = reached[xp.maximum(chains.last_time, 0), xp.arange(chains.count)] + chains.ends
    highest = final.max(axis=1)
    total = highest + xp.log(xp.add.reduce(xp.exp(final - highest[:, None]), axis=1))
    # Without a time step the empty target has probability 1, and every other target 0.
    total = xp.where(chains.last_time < 0, chains.ends[:, 0], total)
    return xp.where(total < _HARDLY, xp.inf, -total).astype(chains.kind, copy=False)


def _ctc_backward(
    g: Gradient,
    log_probs: Array,
    targets: Array,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
    blank: int,
    zero_infinity: bool,
    result: Array,
    F: Namespace,
) -> Gradient:
    """Return PyTorch's gradient: that of the scores before a log_softmax, which leaves it as it is."""
    bare, wanted = (getattr(x, "_array", x) for x in (log_probs, targets))
    chains = _Chains(bare, wanted, input_lengths, target_lengths, blank)
    xp = chains.xp

    def fixed(array: Array) -> Array:
        return log_probs._wrap(array) if hasattr(log_probs, "_array") else array

    times, mirror = (fixed(chains.everywhere(a)) for a in (chains.mirrored_times, chains.mirror))
    labels = fixed(chains.everywhere(chains.labels))
    scores = _state_scores(log_probs, labels, F)
    both = F.cat([scores, F.gather(F.gather(scores, 0, times), 2, mirror)], 1)
    orders = xp.concatenate([chains.labels, xp.take_along_axis(chains.labels, chains.mirror, axis=1)])
    starts, skips = xp.concatenate([chains.starts, chains.starts]), chains.skips(orders)
    never = xp.full((2 * chains.count, 2), _NEVER, dtype=chains.kind)
    reached = F.stack(_recursion(both, fixed(starts), fixed(skips), fixed(never), F), 0)
    after = F.gather(F.gather(reached[:, chains.count :], 0, times), 2, mirror)
    ways = reached[:, : chains.count] + after - scores + fixed(chains.cost(chains.real)[None])
    occupied = F.scatter_add(F.zeros_like(log_probs), 2, labels, F.softmax(ways, 2))
    slope = (F.exp(log_probs) - occupied) * g.reshape(1, -1, 1)
    return _where_it_counts(
        slope, log_probs, (result == math.inf).reshape(1, -1, 1), fixed(chains.heard), zero_infinity, F
    )


def _where_it_counts(
    slope: Array, log_probs: Array, impossible: Array, heard: Array, zero_infinity: bool, F: Namespace
) -> Array:
    """Return 0 after an example's end; NaN, as PyTorch, where its loss (unless 0 is wished) or a score is infinite."""
    zeros = F.zeros_like(slope)
    nowhere = log_probs == -math.inf
    slope = F.where(nowhere if zero_infinity else nowhere | impossible, zeros + math.nan, slope)
    if zero_infinity:
        slope = F.where(impossible, zeros, slope)
    return F.where(F.unsqueeze(heard, 2), slope, zeros)


def _samples(make: Make) -> Cases:
    rows, line = creation.tensor([[1, 2, 2], [3, 1, 0]]), creation.tensor([1, 2, 2, 3])
    return [
        ((make(6, 2, 4), rows, (6, 5), (3, 2)), {}),
        ((make(6, 2, 4), line, (6, 4), (3, 1)), {}),
        ((make(5, 2, 4), rows, (5, 0), (0, 0)), {}),
        ((make(4, 2, 4), rows, (3, 4), (3, 2), 0, True), {}),
    ]


def _logarithms(finfo: numpy.finfo) -> list[list[float]]:
    """Return logarithms of probabilities: of 1, of less, of denormal ones and of 0; and NaN."""
    small = float(finfo.smallest_subnormal)
    return [
        [0.0],
        [-0.5, -2.0, -2.0, -0.5, -1.0],
        [-0.0, -small, -1.0, 0.0],
        [-1.0, -745.0, -0.5, -1e4, -2.0, -0.25, -3.0],
        [-0.5, -1.0, -math.inf, -2.0, -0.25, -3.0, -1.5],
        [-1.0, -2.0, math.nan, -3.0, -0.5, -0.25, -0.125],
    ]


def _reference(
    log_probs: Array, targets: Array, inputs: Ints, lengths: Array, blank: int = 0, zero_infinity: bool = False
) -> Array:
    """Return the losses of the examples, one time and one state after the other."""
    offsets = [0, *accumulate(lengths)]
    losses = []
    for example, (time, count) in enumerate(zip(inputs, lengths, strict=True)):
        said = targets[example] if targets.ndim == 2 else targets[offsets[example] :]
        # The first state stands for no label and no blank so far: no path is still in it after a time step.
        states = [None, blank, *(state for label in said[:count] for state in (label, blank))]
        reached = numpy.array([0.0] + [-math.inf] * (len(states) - 1))
        for row in log_probs[:time, example]:
            arrived = [
                numpy.logaddexp.reduce(reached[_ways(states, at, blank)]) + row[states[at]]
                for at in range(1, len(states))
            ]
            reached = numpy.array([-math.inf, *arrived])
        losses.append(-numpy.logaddexp.reduce(reached[-2:]))
    return numpy.array(losses, dtype=log_probs.dtype)


def _ways(states: list[int | None], at: int, blank: int) -> slice:
    """Return the states from which one comes to that one."""
    skips = states[at] != blank and states[at] != states[at - 2]
    return slice(at - 2 if skips else at - 1, at + 1)


operator(
    "ctc_loss.examples(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, "
    "bool zero_infinity=False)",
    _ctc,
    method=False,
    node="CtcLossBackward0",
    derivatives={"log_probs": _ctc_backward},
    doc="Return minus the log-likelihood of each example's labels.",
    samples=_samples,
    reference=_reference,
    extremes=substituted(_samples, _logarithms),
    supports="f",
)

# --- arguments --------------------------------------------------------------------------------------------------------

_WHILE = " (while checking arguments for ctc_loss_allocate_outputs)"


def _lengths(name: str, lengths: Sizes, count: int) -> tuple[int, ...]:
    """Return lengths as integers: PyTorch reads them on the host, too."""
    if hasattr(lengths, "_array"):
        if lengths._dtype.kind not in "iu":
            raise RuntimeError(f"{name} must be integral\nConvert them with .long().")
        lengths = lengths.reshape(-1).tolist()
    found = tuple(map(index, lengths))
    if len(found) != count:
        raise RuntimeError(f"{name} must be of size batch_size\nThere are {len(found)} for {count} examples.")
    for length in found:
        if length < 0:
            raise RuntimeError(f"Expected {name} to have value at least 0, but got value {length}{_WHILE}")
    return found


def _check_targets(targets: Array, lengths: tuple[int, ...]) -> None:
    shape, where = targets._array.shape, f" for argument #2 'targets'{_WHILE}"
    if len(shape) == 1:
        if shape[0] != sum(lengths):
            raise RuntimeError(
                f"Expected tensor to have size {sum(lengths)} at dimension 0, but got size {shape[0]}{where}"
            )
        return
    if len(shape) != 2:
        raise RuntimeError(f"Expected tensor to have 1 or 2 dimensions, but got {len(shape)} dimensions{where}")
    if shape[0] != len(lengths):
        raise RuntimeError(
            f"Expected tensor to have size {len(lengths)} at dimension 0, but got size {shape[0]}{where}"
        )
    if shape[1] < max(lengths):
        raise RuntimeError(
            f"Expected tensor to have size at least {max(lengths)} at dimension 1, but got size {shape[1]}{where}"
        )


@public(method=False)
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Sizes,
    target_lengths: Sizes,
    blank: int = 0,
    reduction: int = MEAN,
    zero_infinity: bool = False,
) -> Tensor:
    """Return minus the log-likelihood of label sequences under all alignments, reduced: 0 none, 1 mean, 2 sum.

    Parameters
    ----------
    log_probs : Tensor
        Of shape (T, N, C) or (T, C): logarithms of probabilities, as :func:`log_softmax` gives them.
    targets : Tensor
        Labels: of shape (N, S), or all in a row.
    input_lengths, target_lengths : Tensor or sequence of int
        How much of each example counts.
    blank : int
        The class of the blank.
    reduction : int
        The mean is that of losses divided by the length of their target.
    zero_infinity : bool
        Take 0, with no gradient, where an input is too short for its target.

    References
    ----------
    A. Graves et al., "Connectionist temporal classification", ICML 2006.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.ctc_loss(gs.zeros(4, 1, 3).log_softmax(2), gs.tensor([[1, 2]]), (4,), (2,))
    tensor(0.8432)
    """
    if state.casting and autocast.covers("ctc_loss", (log_probs,)):
        return autocast.call(
            "ctc_loss", ctc_loss, log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity
        )
    batched = log_probs._array.ndim > 2
    if not batched:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets._array.ndim == 1 else targets
    losses = _of_examples(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    if zero_infinity:
        losses = PUBLIC["where"](losses == math.inf, PUBLIC["zeros_like"](losses), losses)
    if reduction == MEAN:
        lengths = _lengths("target_lengths", target_lengths, losses._array.size)
        each = PUBLIC["tensor"]([max(n, 1) for n in lengths], dtype=losses.dtype, device=losses.device)
        return (losses / each).mean()
    return losses.sum() if reduction != NONE else losses if batched else losses.squeeze(0)


def _of_examples(
    log_probs: Array, targets: Array, input_lengths: Sizes, target_lengths: Sizes, blank: int, zero_infinity: bool
) -> Array:
    array = log_probs._array
    if array.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {array.ndim}-dimensional tensor for argument "
            f"#1 'log_probs'{_WHILE}"
        )
    if not array.size:
        raise RuntimeError("log_probs tensor must not be empty\nIt has shape (time, examples, classes).")
    times, count, classes = array.shape
    if not 0 <= blank < classes:
        raise RuntimeError(f"blank must be in label range\nThe classes are 0 to {classes - 1}, the blank is {blank}.")
    inputs, lengths = _lengths("input_lengths", input_lengths, count), _lengths("target_lengths", target_lengths, count)
    _check_targets(targets, lengths)
    if max(inputs) > times:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {times}, but got value {max(inputs)}{_WHILE}\n"
            f"The scores have shape {list(array.shape)}: time, examples, classes."
        )
    labels = targets if targets._dtype.kind in "iu" else targets.long()
    return OPERATORS["ctc_loss.examples"].function(log_probs, labels, inputs, lengths, blank, zero_infinity)
