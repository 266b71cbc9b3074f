"""Topics of ``gradscope explain TOPIC``: short texts about autograd, each with a bad and a good program that run."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import dedent, fill, indent

__all__ = ["TOPICS", "Topic", "find_topic", "suggest", "topic_text", "with_examples"]


@dataclass(frozen=True, slots=True)
class Topic:
    """Something to know about gradients.

    Attributes
    ----------
    name : str
        What to ask for.
    title : str
        A few words.
    text : str
        Paragraphs.
    bad, good : str
        Programs; ``gs`` is gradscope, and PyTorch would do.
    tool : str
        What of gradscope helps.
    errors : tuple of str
        Parts of the messages, PyTorch's or gradscope's, that it is about.
    """

    name: str
    title: str
    text: str
    bad: str
    good: str
    tool: str
    aliases: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


def _topic(
    name: str, title: str, text: str, bad: str, good: str, tool: str, *aliases: str, errors: tuple[str, ...] = ()
) -> Topic:
    paragraphs = [fill(part.strip(), 88) for part in dedent(text).strip().split("\n\n")]
    return Topic(name, title, "\n\n".join(paragraphs), dedent(bad).strip(), dedent(good).strip(), tool, aliases, errors)


_ALL = (
    _topic(
        "inplace",
        "writing a tensor that backward needs",
        """
        Some operators save an input or their result for their derivative. Writing that memory afterwards (add_, +=,
        x[i] = ..., an optimizer's step) makes the derivative impossible; backward() notices by the version number and
        raises. Views and detach() share the memory; no_grad() hides a write from the graph, not from the memory.
        """,
        """
        x = gs.ones(3, requires_grad=True)
        y = x.exp()            # saves its result
        y += 1                 # overwrites it
        y.sum().backward()     # RuntimeError
        """,
        """
        x = gs.ones(3, requires_grad=True)
        y = x.exp()
        y = y + 1
        y.sum().backward()
        """,
        "gradscope check SCRIPT names the three lines: saved, written, needed.",
        "in-place",
        errors=("modified by an inplace operation",),
    ),
    _topic(
        "version-counter",
        "how a write is noticed",
        """
        Each piece of memory has a counter, tensor._version, which every in-place operator raises. A node remembers the
        version of what it saved and compares when it runs. Views and detach() share the counter; .data and the NumPy
        array of a tensor do not, so writes through them go unnoticed and give a wrong gradient without an error.
        """,
        """
        x = gs.ones(3, requires_grad=True)
        y = x.exp()
        y.data.mul_(0)         # not counted: the gradient will be wrong
        y.sum().backward()
        assert x.grad.tolist() == [0.0, 0.0, 0.0]
        """,
        """
        x = gs.ones(3, requires_grad=True)
        y = x.exp()
        before = y._version
        z = y.detach().clone().mul_(0)     # memory of its own
        assert y._version == before
        y.sum().backward()
        assert x.grad.tolist() == y.tolist()
        """,
        "gradscope check SCRIPT",
        "version",
        "versions",
    ),
    _topic(
        "nan",
        "NaN and Inf: who makes them, who passes them on",
        """
        NaN is produced in few ways: 0/0, 0*inf, inf-inf, log or sqrt of a negative number, a softmax over a row that is
        masked entirely. Inf: division by 0, log(0), exp() or float16 that overflows. All other operators pass them on,
        so the loss tells nothing about the origin.

        A derivative can be infinite where the function is not: sqrt, norm and x**p with p < 1 at 0. When such a
        gradient meets a 0 it is NaN.
        """,
        """
        x = gs.zeros(3, requires_grad=True)
        ((x * x).sum().sqrt() * 0).backward()
        assert x.grad.isnan().all()
        """,
        """
        x = gs.zeros(3, requires_grad=True)
        (((x * x).sum() + 1e-12).sqrt() * 0).backward()
        assert not x.grad.isnan().any()
        """,
        "gi.nan_origin(loss); `with gi.watch_nan(stop=True):` raises at the operator that makes the first NaN.",
        "inf",
        "nans",
        errors=("returned nan values",),
    ),
    _topic(
        "double-where",
        "where() and the branch that was not taken",
        """
        where(ok, f(x), 0) computes f(x) everywhere, and backward computes its derivative everywhere too: where() sends
        a gradient of 0 to the elements it did not take, and 0 times an infinite derivative is NaN. Masking the
        result is
        not enough; the argument must be safe.
        """,
        """
        x = gs.tensor([0.0, 4.0], requires_grad=True)
        gs.where(x > 0, x.sqrt(), gs.zeros_like(x)).sum().backward()
        assert x.grad.isnan().any()
        """,
        """
        x = gs.tensor([0.0, 4.0], requires_grad=True)
        safe = gs.where(x > 0, x, gs.ones_like(x))
        gs.where(x > 0, safe.sqrt(), gs.zeros_like(x)).sum().backward()
        assert x.grad.tolist() == [0.0, 0.25]
        """,
        "gi.nan_origin(loss) names the node, and the where() that sent the 0.",
        "where",
    ),
    _topic(
        "no-grad",
        "a parameter without a gradient",
        """
        .grad stays None when the loss was not computed from the parameter through recorded operators. Usual reasons:
        detach() or .data on the way; the operator ran under no_grad(); argmax, a comparison or a cast to integers; a
        value taken out by item() or numpy(); requires_grad is False; the module is never called; a new tensor was bound
        over the parameter; gradients were cleared; autograd.grad() was used, which returns them instead.
        """,
        """
        w = gs.ones(3, requires_grad=True)
        hidden = w.exp().detach()          # the way ends here
        loss = (hidden * gs.ones(3, requires_grad=True)).sum()
        loss.backward()
        assert w.grad is None
        """,
        """
        w = gs.ones(3, requires_grad=True)
        hidden = w.exp()
        loss = (hidden * gs.ones(3, requires_grad=True)).sum()
        loss.backward()
        assert w.grad is not None
        """,
        "gradscope doctor SCRIPT. In a program: with gi.ledger(): ...; gi.why_no_grad(model, loss)",
        "why-no-grad",
        "no_grad",
        "nograd",
        "detach",
        "grad-is-none",
        errors=(
            "does not require grad and does not have a grad_fn",
            "'NoneType' object has no attribute",
            "appears to not have been used in the graph",
            "Can't call numpy() on Tensor that requires grad",
        ),
    ),
    _topic(
        "not-learning",
        "the loss does not fall",
        """
        A parameter changes when a backward fills its .grad and an optimizer that holds it steps before the gradient is
        cleared. What breaks it without an error: step() is missing, or zero_grad() stands between backward() and
        step(); the optimizer was made before a layer was replaced; layers in a plain list, or a tensor in the place of
        a Parameter, which parameters() does not give; requires_grad is False; detach() or item() on the way to the
        loss; gradients that vanish, or are never cleared; predictions in a column and targets in a row.
        """,
        """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
        before = model.weight.detach().clone()
        model(gs.ones(4, 2)).sum().backward()
        optimizer.zero_grad()              # nothing is left to step with
        optimizer.step()
        assert (model.weight == before).all()
        """,
        """
        model = gs.nn.Linear(2, 1)
        optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
        before = model.weight.detach().clone()
        optimizer.zero_grad()
        model(gs.ones(4, 2)).sum().backward()
        optimizer.step()
        assert not (model.weight == before).any()
        """,
        "gradscope doctor SCRIPT. In a program: with gi.updates() as watch: ..., and watch.result",
        "loss",
        "loss-does-not-fall",
        "loss-does-not-go-down",
        "loss-does-not-decrease",
        "optimizer",
        "frozen",
    ),
    _topic(
        "leaf",
        "leaves, and where .grad is",
        """
        A leaf is a tensor that no recorded operator made: what was created with requires_grad=True, an nn.Parameter.
        backward() fills .grad of leaves only. w = w * 2, w = w.to(device) or w = w / w.norm() bind a new tensor that is
        no leaf any more, and the optimizer still has the old one.
        """,
        """
        w = gs.ones(3, requires_grad=True)
        w = w * 0.1                        # no leaf any more
        w.sum().backward()
        assert not w.is_leaf
        """,
        """
        w = (gs.ones(3) * 0.1).requires_grad_()
        w.sum().backward()
        assert w.is_leaf and w.grad is not None
        """,
        "gi.why_no_grad(w, loss)",
        "leaves",
        "retain_grad",
        "non-leaf",
        errors=("a leaf Variable that requires grad", "can't optimize a non-leaf Tensor", "that is not a leaf Tensor"),
    ),
    _topic(
        "second-backward",
        "backward through the graph a second time",
        """
        backward() frees what the nodes saved as soon as they have run. A second pass that arrives at such a node
        raises.
        Often only one was meant: a hidden state carried into the next iteration still hangs on the graph of the
        one before; detach() it. Where two losses share a part, add them and call backward() once, or keep the graph
        of the
        first with retain_graph=True.
        """,
        """
        w = gs.ones(3, requires_grad=True)
        hidden = gs.zeros(3)
        for _ in range(2):
            hidden = (hidden + w).tanh()
            hidden.sum().backward()            # RuntimeError the second time
        """,
        """
        w = gs.ones(3, requires_grad=True)
        hidden = gs.zeros(3)
        for _ in range(2):
            hidden = (hidden.detach() + w).tanh()
            hidden.sum().backward()
        """,
        "gi.second_backward(loss): where the first was, and the line that builds on it. gradscope check: GS104",
        "second",
        errors=("backward through the graph a second time", "after they have already been freed"),
    ),
    _topic(
        "retain_graph",
        "what retain_graph=True keeps",
        """
        It keeps the saved tensors of a graph after its backward, so that another can run through it. It does not keep
        gradients (they accumulate in any case), and it costs the memory of all saved tensors. As a remedy for "second
        time" errors it is usually wrong: in a loop each iteration then runs all graphs before it.
        """,
        """
        w = gs.ones(3, requires_grad=True)
        hidden, sizes = gs.zeros(3), []
        for _ in range(3):
            hidden = (hidden + w).tanh()
            hidden.sum().backward(retain_graph=True)   # runs all iterations before, again
        """,
        """
        w = gs.ones(3, requires_grad=True)
        hidden = w.exp()                               # shared by two losses
        (hidden.sum() + (hidden * hidden).sum()).backward()
        """,
        "gi.growth() shows a graph that becomes longer, and the line that builds on the earlier one.",
        "retain-graph",
    ),
    _topic(
        "views",
        "views: two tensors, one memory",
        """
        Slices, view(), t(), expand() and detach() share memory with their base, and its version. Writing a view writes
        the base, and autograd rewrites the base's history (CopySlices). It cannot for one of several views that one
        operator returned (unbind, split, chunk), nor for a view made under no_grad() and written outside.
        """,
        """
        x = gs.ones(2, 3, requires_grad=True).clone()
        first, second = x.unbind()
        first.mul_(2)                      # RuntimeError
        """,
        """
        x = gs.ones(2, 3, requires_grad=True).clone()
        x[0].mul_(2)                       # one view: its base takes part
        x.sum().backward()
        """,
        "gradscope check SCRIPT reports GS105 with the line that made the view.",
        "view",
        errors=("is a view and is being modified inplace", "is a view and its base"),
    ),
    _topic(
        "custom-function",
        "an autograd.Function of one's own",
        """
        backward() returns one gradient for each argument of forward(), in order and in the argument's shape; None for
        what is no tensor. Nothing checks the formula. forward() runs unrecorded: for second derivatives save its inputs
        and outputs, and compute what is between in backward(). Save tensors by save_for_backward(), not as ctx.x.
        """,
        """
        class Scaled(gs.autograd.Function):
            @staticmethod
            def forward(ctx, x, factor):
                ctx.factor = factor
                return x * factor

            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.factor       # two arguments, one gradient

        Scaled.apply(gs.ones(3, requires_grad=True), 2.0).sum().backward()     # RuntimeError
        """,
        """
        class Scaled(gs.autograd.Function):
            @staticmethod
            def forward(ctx, x, factor):
                ctx.factor = factor
                return x * factor

            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.factor, None

        x = gs.ones(3, dtype=gs.float64, requires_grad=True)
        assert gs.autograd.gradcheck(lambda x: Scaled.apply(x, 2.0), (x,))
        """,
        "gradscope.testing.assert_gradients names the Function whose formula is wrong; gradscope doctor SCRIPT",
        "function",
        "gradcheck",
        errors=("returned an incorrect number of gradients", "returned an invalid gradient"),
    ),
    _topic(
        "create-graph",
        "a gradient as a part of the loss",
        """
        autograd.grad() returns constants. To differentiate a loss that contains a gradient (a penalty on its norm, a
        force, a residual of a differential equation) pass create_graph=True. Parameters that only add something, such
        as the last bias, drop out of the derivative and rightly get no gradient from it.
        """,
        """
        w, x = gs.ones(3, requires_grad=True), gs.ones(3, requires_grad=True)
        (slope,) = gs.autograd.grad((w * x).exp().sum(), x)
        loss = (w * w).sum() + (slope.norm() - 1) ** 2         # the penalty changes nothing
        loss.backward()
        assert w.grad.tolist() == [2.0, 2.0, 2.0]
        """,
        """
        w, x = gs.ones(3, requires_grad=True), gs.ones(3, requires_grad=True)
        (slope,) = gs.autograd.grad((w * x).exp().sum(), x, create_graph=True)
        loss = (w * w).sum() + (slope.norm() - 1) ** 2
        loss.backward()
        assert w.grad.tolist() != [2.0, 2.0, 2.0]
        """,
        "gradscope doctor SCRIPT",
        "gradient-penalty",
        "double-backward",
    ),
    _topic(
        "hooks",
        "hooks that keep everything alive",
        """
        A hook on a tensor is kept by the tensor's node. When the hook's function refers to the tensor, they keep each
        other alive until the garbage collector runs (in PyTorch, where C++ is on the way, for ever). The same holds for
        ctx.y = y in a Function's forward, instead of save_for_backward(). A hook that returns something replaces the
        gradient; one that writes the gradient in place corrupts it for others.
        """,
        """
        y = gs.ones(3, requires_grad=True) * 2
        y.register_hook(lambda grad: print(y.shape, grad))     # y -> node -> hook -> y
        """,
        """
        y = gs.ones(3, requires_grad=True) * 2
        shape = y.shape
        y.register_hook(lambda grad: print(shape, grad))
        """,
        "with gi.leaks() as watch: ...; watch.result tells each cycle.",
        "hook",
        "leaks",
        "leak",
    ),
    _topic(
        "memory",
        "what holds the memory",
        """
        Between forward and backward the graph holds every tensor that a derivative needs. The activations among them
        are what training costs beyond the parameters. A loss that is kept (losses.append(loss), total += loss) keeps
        the graph of its iteration: keep the number.
        """,
        """
        w = gs.ones(3, requires_grad=True)
        losses = []
        for _ in range(3):
            loss = (w * w).sum()
            loss.backward()
            losses.append(loss)            # keeps the graph too
        assert losses[0].grad_fn is not None
        """,
        """
        w = gs.ones(3, requires_grad=True)
        losses = []
        for _ in range(3):
            loss = (w * w).sum()
            loss.backward()
            losses.append(loss.item())
        """,
        "gi.memory(loss): by module, operator and line. gi.growth(): who keeps graphs of earlier iterations.",
        "growth",
        "kept-loss",
        errors=("out of memory",),
    ),
    _topic(
        "accumulation",
        "gradients add up",
        """
        backward() adds to .grad. Without optimizer.zero_grad() in each iteration the gradients of all iterations before
        are in it. zero_grad() sets .grad to None, so a look at it afterwards finds nothing.
        """,
        """
        w = gs.ones(3, requires_grad=True)
        for _ in range(2):
            w.sum().backward()
        assert w.grad.tolist() == [2.0, 2.0, 2.0]
        """,
        """
        w = gs.ones(3, requires_grad=True)
        for _ in range(2):
            w.grad = None
            w.sum().backward()
        assert w.grad.tolist() == [1.0, 1.0, 1.0]
        """,
        "gradscope doctor SCRIPT; gi.updates() tells of gradients that an optimizer used twice, or never.",
        "zero_grad",
        "zero-grad",
    ),
    _topic(
        "vanishing",
        "gradients that vanish, explode or die",
        """
        Each layer multiplies the gradient by its derivative. Saturated sigmoid and tanh make it smaller layer by layer;
        large weights make it larger. A ReLU whose input is negative for every example gives no gradient at all, and
        nothing can bring it back. Compare |grad| / |weight| by layer: between 1e-4 and 1e-1 is common.
        """,
        """
        x = gs.full((1, 4), 9.0, requires_grad=True)
        y = x
        for _ in range(3):
            y = gs.sigmoid(10 * y)
        y.sum().backward()
        assert float(x.grad.abs().max()) < 1e-6
        """,
        """
        x = gs.full((1, 4), 9.0, requires_grad=True)
        y = x
        for _ in range(3):
            y = gs.relu(y)
        y.sum().backward()
        assert float(x.grad.abs().max()) == 1.0
        """,
        "gradscope doctor SCRIPT; gi.gradient_flow(model, loss), with .table() and .plot()",
        "exploding",
        "dead-relu",
        "gradient-flow",
    ),
    _topic(
        "checkpoint",
        "computing again instead of keeping",
        """
        A checkpoint keeps nothing of what its function saves; when the backward pass needs it, the function is called
        again. So it has to compute the same both times: what depends on a counter, on a file, on the clock or on a
        tensor that is written in between does not. Random numbers are drawn again as they were.

        With use_reentrant=True the call is one node with a backward of its own inside: no gradient comes unless an
        argument requires grad, and autograd.grad() does not work. use_reentrant=False has neither limit.
        """,
        """
        calls = []
        def block(x):
            calls.append(1)
            return x.exp().sin() if len(calls) == 1 else x.exp()
        x = gs.ones(3, requires_grad=True)
        y = gs.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
        y.sum().backward()     # RuntimeError
        """,
        """
        def block(x):
            return x.exp().sin()
        x = gs.ones(3, requires_grad=True)
        y = gs.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
        y.sum().backward()
        """,
        "checkpoint(..., debug=True) names the first operator that differs; gi.memory(loss) shows what is kept.",
        "recomputation",
        errors=(
            "tensors was saved during the original forward and recomputation",
            "different metadata than during the forward pass",
            "trying to save more tensors during recomputation",
            "checkpoint is incompatible with .grad()",
            "None of the inputs have requires_grad=True",
        ),
    ),
)

TOPICS: dict[str, Topic] = {topic.name: topic for topic in _ALL}

_BY_ALIAS = {alias: topic for topic in _ALL for alias in (topic.name, *topic.aliases)}


def find_topic(word: str) -> Topic | None:
    """Return the topic that a word names or an error message is about, None if there is none.

    Parameters
    ----------
    word : str
        Upper or lower case; spaces, hyphens and underscores are alike.

    Examples
    --------
    >>> find_topic("Version Counter").name, find_topic("zebra")
    ('version-counter', None)
    >>> find_topic("RuntimeError: Trying to backward through the graph a second time (...)").name
    'second-backward'
    """
    named = next((topic for alias, topic in _BY_ALIAS.items() if _plain(alias) == _plain(word)), None)
    return named or next((t for t in _ALL if any(part.lower() in word.lower() for part in t.errors)), None)


def suggest(word: str, more: Iterable[str] = ()) -> list[str]:
    """Return names that are spelt like a word.

    Parameters
    ----------
    more : iterable of str
        Names besides the topics'.

    Examples
    --------
    >>> suggest("memroy")
    ['memory']
    """
    names = {_plain(name): name for name in (*_BY_ALIAS, *more)}
    close = difflib.get_close_matches(_plain(word), names, n=3, cutoff=0.6)
    found = [names[name] for name in close]
    return list(dict.fromkeys(_BY_ALIAS[name].name if name in _BY_ALIAS else name for name in found))


def topic_text(topic: Topic) -> str:
    """Return a topic as text to print."""
    title = f"{topic.name}: {topic.title}"
    return with_examples(title, topic.text, topic.bad, topic.good, f"Tool: {topic.tool}")


def with_examples(title: str, text: str, bad: str, good: str, more: str = "") -> str:
    """Return what there is to know, with a bad and a good program, as text to print."""
    parts = (title, text, "Instead of", indent(bad, "    "), "write", indent(good, "    "), more)
    return "\n\n".join(part for part in parts if part)


def _plain(word: str) -> str:
    return word.lower().replace("_", "-").replace(" ", "-")
