"""GS106: A saved tensor has other values than were saved, and no version tells."""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.diagnosis.rule_registry import Rule
from ...inspect.records.write_facts import ShareFact, WriteFact
from ..findings.finding_parts import later_writes, same_line, sites, uncounted
from ..findings.finding_records import Finding, TensorDescription
from ..findings.source_fixes import written_at
from ..watching.violation_facts import ChangedFacts

__all__ = ["UnnoticedChange"]


class UnnoticedChange(Rule):
    """A saved tensor has other values than were saved, and no version tells."""

    code = "GS106"
    title = "saved tensor changed unnoticed"
    severity = "silent-wrong"
    needs = (ChangedFacts,)
    what = """
        A node of the backward graph keeps a tensor, and the values in its memory are no longer those that were
        saved, while its version is: the write went where none is counted (.data, the NumPy array of numpy() or
        from_numpy(), DLPack, the storage, a C extension, the running statistics of batch_norm). backward() cannot
        notice, computes with the new values and returns a wrong gradient. It was found by a checksum of the
        memory.
        """
    bad = """
        loss = criterion(model(x), y)
        w.data.clamp_(-0.5, 0.5)   # counts no version
        loss.backward()            # a gradient at weights that forward never saw
        """
    good = """
        loss = criterion(model(x), y)
        loss.backward()
        with gs.no_grad():
            w.clamp_(-0.5, 0.5)
        """

    def judge(self, facts: ChangedFacts) -> Iterator[Finding]:
        """Yield the finding."""
        write = facts.writes[0] if facts.writes else None
        share = facts.shares[-1] if facts.shares else None
        where = write.location if write is not None else None
        name = facts.leaf or facts.buffer or (written_at(where, write.operator).name if write is not None else "")
        leaf = facts.leaf is not None
        tensor = TensorDescription(name, facts.shape, facts.dtype, facts.producer, facts.saved_name, leaf)
        kind = "parameter " if leaf else "buffer " if facts.buffer else ""
        what = f"{kind}{tensor}".replace("parameter a tensor", "a parameter")
        # Beside a write, the place where the memory was handed out says something only if it is another line.
        handed = share.location if share is not None and not same_line(share.location, where) else None
        handed_out = "" if share is None else f"its memory was handed out here by {share.how}"
        written_since = "" if write is not None else ", and has been written since"
        cause = "" if write is not None or share is not None else _cause(facts.saved_name)
        computes, is_wrong = ("would compute", "would be") if facts.kept else ("computes", "is")
        yield Finding(
            code=self.code,
            message=f"{what} changed unnoticed{cause}, and {facts.node} {computes} with the new values",
            sites=sites(
                ("written", where, uncounted(write)),
                ("shared", handed, f"{handed_out}{written_since}"),
                ("saved", facts.saved, f"saved here by {facts.node} as `{facts.saved_name}`"),
                ("read", facts.read, f"needed here: {facts.node} does not fail, its gradient {is_wrong} wrong"),
                *later_writes(facts.writes),
            ),
            tensor=tensor,
            node=facts.node,
            saved_version=facts.version,
            current_version=facts.version,
            help=_help(write, share, leaf, facts.saved_name),
        )


_STATISTICS = ("running_mean", "running_var")


def _cause(saved_name: str) -> str:
    """Return by what something has changed, where no place says so."""
    return " as its layer ran in training mode" if saved_name in _STATISTICS else ", by no operator"


def _help(write: WriteFact | None, share: ShareFact | None, is_parameter: bool, saved_name: str) -> str:
    if write is not None and is_parameter:
        return "write it after backward(), under no_grad() instead of through .data"
    if write is not None:
        return "write into a clone(), or after backward()"
    if share is not None and share.how in ("from_numpy()", "frombuffer()", "as_tensor()", "asarray()"):
        copy = f"{share.how[:-1]}array.copy())" if share.how != "frombuffer()" else "frombuffer(...).clone()"
        return f"give the tensor a copy of the array: {copy}"
    if share is not None:
        return f"give out a copy: clone() before {share.how}"
    if saved_name in _STATISTICS:
        return "call backward() before the layer runs in training mode again"
    return (
        "look between these lines for a write through NumPy (numpy(), from_numpy()), DLPack, a C extension, or a "
        "layer's running statistics"
    )
