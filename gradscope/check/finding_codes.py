"""The finding codes: what each means, with a program that has it and one that does not.

``gradscope check --explain GS101`` prints what stands here. A code keeps its meaning for ever; a new kind of finding
gets a new code.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent, fill, indent

__all__ = ["CODES", "Code", "explain"]


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding.

    Attributes
    ----------
    code : str
        ``'GS101'``.
    title : str
        A few words.
    severity : str
        ``'error'``: the program raises; ``'silent-wrong'``: it goes on with a wrong gradient.
    what : str
        What happens, and why.
    bad, good : str
        A program that has it, and the same program mended.
    """

    code: str
    title: str
    severity: str
    what: str
    bad: str
    good: str


def _code(code: str, title: str, what: str, bad: str, good: str, severity: str = "error") -> Code:
    return Code(code, title, severity, fill(dedent(what).strip(), 88), dedent(bad).strip(), dedent(good).strip())


CODES: dict[str, Code] = {
    c.code: c
    for c in (
        _code(
            "GS101",
            "saved tensor modified in place",
            """
            A node of the backward graph keeps the tensors its derivative needs: some operators save an input (mul,
            pow, matmul), some their own result (exp, sigmoid, tanh, softmax). A later in-place write changed the
            values in that memory, so the derivative can no longer be computed; backward() notices by the version
            number of the memory and raises. Views and detach() share the memory, and no_grad() hides a write from the
            graph, not from the memory.
            """,
            """
            out = x.sigmoid()      # saves its result
            out += skip            # overwrites it
            out.sum().backward()   # needs it
            """,
            """
            out = x.sigmoid()
            out = out + skip       # a new tensor; the saved one stays as it was
            out.sum().backward()
            """,
        ),
        _code(
            "GS102",
            "parameter modified between forward and backward",
            """
            The forward pass saved a parameter (or a view of it, such as the transposed weight of a linear layer). An
            optimizer step, or another write under no_grad(), changed it before backward() used it. The gradient
            belongs to the old values, so the step has to wait, or the forward pass has to run again after it. Typical
            where two models train against each other: the first one's step comes before the backward pass of a loss
            that also went through it.
            """,
            """
            loss = criterion(model(x), y)
            optimizer.step()       # writes the weights that forward saved
            loss.backward()
            """,
            """
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            """,
        ),
        _code(
            "GS103",
            "leaf that requires grad written in place",
            """
            A leaf (a parameter, or a tensor made with requires_grad=True) or a view of one was written in place while
            operators were being recorded. The leaf's value would then depend on an earlier value of itself, and its
            gradient would belong to neither, so the write is refused where it stands.
            """,
            """
            w -= lr * w.grad
            """,
            """
            with gs.no_grad():
                w -= lr * w.grad
            """,
        ),
        _code(
            "GS104",
            "backward through a freed graph",
            """
            backward() frees what the nodes saved as soon as they have run. A second backward pass arrived at a node
            that an earlier one had freed. Either both passes are wanted (then add the losses, or keep the graph of
            the first with retain_graph=True), or the second was meant to end earlier: a hidden state carried from one
            iteration to the next still hangs on the graph of the iteration before.
            """,
            """
            for x in sequence:
                hidden = cell(x, hidden)           # hangs on the iteration before
                hidden.sum().backward()
            """,
            """
            for x in sequence:
                hidden = cell(x, hidden.detach())  # starts a graph of its own
                hidden.sum().backward()
            """,
        ),
        _code(
            "GS105",
            "in-place write to a view that does not allow it",
            """
            Writing a view also writes its base, so the base's history has to be rewritten. That is impossible for one
            of several views that one operator returned (unbind, split, chunk), for a view that was made under
            no_grad() or in inference mode and is written outside, and for a view that a custom Function returned.
            """,
            """
            first, second = x.unbind()
            first.mul_(2)
            """,
            """
            first, second = x.unbind()
            first = first * 2
            """,
        ),
        _code(
            "GS106",
            "saved tensor changed unnoticed",
            """
            A node of the backward graph keeps a tensor, and the values in its memory are no longer those that were
            saved, while its version is: the write went where none is counted (.data, the NumPy array of numpy() or
            from_numpy(), DLPack, the storage, a C extension, the running statistics of batch_norm). backward() cannot
            notice, computes with the new values and returns a wrong gradient. It was found by a checksum of the
            memory.
            """,
            """
            loss = criterion(model(x), y)
            w.data.clamp_(-0.5, 0.5)   # counts no version
            loss.backward()            # a gradient at weights that forward never saw
            """,
            """
            loss = criterion(model(x), y)
            loss.backward()
            with gs.no_grad():
                w.clamp_(-0.5, 0.5)
            """,
            severity="silent-wrong",
        ),
        _code(
            "GS107",
            "a module's input changed in place",
            """
            A module was called with a tensor, wrote it in place and returned another one; the caller went on with its
            own tensor, which now has other values. Nothing raises, and the gradient is that of a function which is not
            the one that stands there. Typical is ReLU(inplace=True) at the beginning of a residual branch: the skip
            connection then carries relu(x) in place of x.
            """,
            """
            branch = gs.nn.Sequential(gs.nn.ReLU(inplace=True), gs.nn.Linear(3, 3))
            out = branch(x) + x        # the ReLU has written x
            """,
            """
            branch = gs.nn.Sequential(gs.nn.ReLU(), gs.nn.Linear(3, 3))
            out = branch(x) + x
            """,
            severity="silent-wrong",
        ),
        _code(
            "GS108",
            "shared gradient changed in place",
            """
            A hook, or the backward of a custom Function, wrote a gradient that it was given, and another node of the
            same backward pass gets that very tensor: an addition, for one, hands its gradient on to both operands.
            The other branch's gradient is wrong, without an error. A hook should return a new gradient, which then
            takes the place of the old one on its own branch only.
            """,
            """
            a, b = w * 2, w * 3
            b.register_hook(lambda grad: grad.mul_(0.1))
            ((a + b) ** 2).sum().backward()
            """,
            """
            a, b = w * 2, w * 3
            b.register_hook(lambda grad: grad * 0.1)
            ((a + b) ** 2).sum().backward()
            """,
            severity="silent-wrong",
        ),
    )
}


def explain(code: str) -> str:
    """Return what a code means, as text to print.

    Parameters
    ----------
    code : str
        Upper or lower case.

    Raises
    ------
    KeyError
        If there is no such code.

    Examples
    --------
    >>> print(explain("GS103").splitlines()[0])
    GS103: leaf that requires grad written in place (error)
    """
    entry = CODES[code.upper()]
    return "\n".join(
        [
            f"{entry.code}: {entry.title} ({entry.severity})",
            "",
            entry.what,
            "",
            "Instead of",
            "",
            indent(entry.bad, "    "),
            "",
            "write",
            "",
            indent(entry.good, "    "),
        ]
    )
