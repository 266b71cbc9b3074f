"""Parameters that no backward of a program gives a gradient, and why: each backward is asked, the right one answers."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType
from typing import Any

from ....program_files import is_installed_file, is_library_file
from ...adapters import Adapter
from ...records.execution_order import walk
from ...records.module_tracking import module_of_parameter
from ...records.naming import tables_of
from ...records.records import Location
from ...source.call_sites import user_frames
from ...source.variable_names import name_of
from .dataflow import DataflowObserver
from .no_grad_reasons import GradientReport, NoGradient, Reason
from .tensor_in_error import RefusedBackward, leaves_in
from .why_no_grad import LossDiagnosis

__all__ = ["MissingGradients", "ModelNames"]


_UNUSED = (Reason.UNUSED, Reason.UNUSED_MODULE)
# How programs keep a target network, a teacher or an average of weights out of the backward.
_MEANT = (Reason.NO_GRAD, Reason.DETACHED, Reason.NOT_IN_LOSS)


def _is_unused(answer: NoGradient) -> bool:
    """Whether a parameter is not used, or in a package's own lines for a result that the program leaves."""
    if answer.reason is Reason.NOT_IN_LOSS:
        return answer.location is not None and is_installed_file(answer.location.filename)
    return answer.reason in _UNUSED


class ModelNames:
    """Names of a program's models: where there are several, each has that of the variable that holds it."""

    def __init__(self, recorder: DataflowObserver) -> None:
        self._recorder = recorder
        self._variables: dict[int, tuple[weakref.ref[Any], str]] = {}

    def look(self, frame: FrameType) -> None:
        """Look for the variables of the models, from a frame outwards."""
        models = self._with_parameters()
        unknown = [model for model in models if self._variable(model) == ""]
        if len(models) < 2 or not unknown:
            return
        frames = list(user_frames(frame))
        for model in unknown:
            found = next(filter(None, (name_of(model, f) for f in frames)), "")
            self._variables[id(model)] = (weakref.ref(model), found.removeprefix("self."))

    def paths(self) -> dict[int, str]:
        """Return the paths of all parameters of the models, by the id of the parameter."""
        found = self._recorder.parameter_paths()
        models = self._with_parameters()
        if len(models) < 2:
            return found
        for model in models:
            variable = self._variable(model)
            for path, parameter in self._recorder.adapter.named_parameters(model) if variable else ():
                found[id(parameter)] = f"{variable}.{path}"
        return found

    def _with_parameters(self) -> list[Any]:
        """Return the models that have parameters: a loss is a module too, and has none."""
        return [model for model in self._recorder.models() if self._recorder.adapter.named_parameters(model)]

    def _variable(self, model: Any) -> str:
        reference, name = self._variables.get(id(model), (None, ""))
        return name if reference is not None and reference() is model else ""


class MissingGradients:
    """Collects, backward by backward, why parameters of the program's models get no gradient.

    A program may have several losses, and a parameter may be cut off from one of them with good reason (a generator
    from its discriminator's loss). So each line that calls backward() is asked, and the answer is that of the last
    backward before a step of the optimizer that holds the parameter; without an optimizer, of the first. Where others
    are put in the place of parameters (``functional_call()``), only those that an optimizer holds are to be trained;
    so it is with what is kept out by no_grad or detach, or only evaluated, once an optimizer has stepped.
    """

    def __init__(self, recorder: DataflowObserver, names: ModelNames) -> None:
        self._recorder = recorder
        self._adapter: Adapter = recorder.adapter
        self._names = names
        # For each parameter, by its id: itself, and the answer of each line that called backward().
        self._answers: dict[int, tuple[weakref.ref[Any], dict[Location | None, NoGradient]]] = {}
        self._wanted: dict[int, Location | None] = {}
        # The leaves that a failed backward would have reached, and those that had a gradient after one.
        self._spared: dict[int, weakref.ref[Any]] = {}
        self._replaced: set[int] = set()
        # Those that a model of an installed package has, and its own forward does not use.
        self._spare: set[int] = set()
        # The number of the backward that was first asked for a parameter.
        self._since: dict[int, int] = {}
        self._optimized = False
        self._refused = False
        self._named: list[NoGradient] = []
        self._total = 0

    def ran(self, root: Any, location: Location | None) -> None:
        """Ask a backward that has run, called at `location`."""
        leaf = self._adapter.variable(root[0])
        end = self._recorder.entry_of_node(root[0]) if leaf is None else self._recorder.origin_of(leaf)
        self._ask(root, end, None, location, ())

    def failed(self, roots: Iterable[tuple[Any, int]]) -> None:
        """Note that a backward has failed: what its graph reaches does not lack a gradient for another reason."""
        for link in walk(self._adapter, [node for node, _ in roots]).values():
            leaf = self._adapter.variable(link.node)
            if leaf is not None:
                self._spared[id(leaf)] = weakref.ref(leaf)

    def refused(self, refused: RefusedBackward) -> None:
        """Ask for a loss without a graph."""
        self._answers.clear()
        self._wanted.clear()
        self._refused = True
        loss, end = refused.loss, self._recorder.entry_of(refused.loss)
        self._ask(None, end, loss, refused.location, refused.frames)
        self._since.clear()  # it is the last one
        if not self._recorder.models():
            diagnosis = LossDiagnosis(
                self._adapter, self._recorder, None, root=None, end=end, loss=loss, frames=refused.frames
            )
            self._named = [diagnosis.explain(leaf, name) for name, leaf in leaves_in(self._adapter, refused.frames)]

    def none(self, pairs: Iterable[tuple[str, Any]]) -> None:
        """Ask for tensors whose gradient the program took for one, and it was None."""
        for name, tensor in pairs:
            diagnosis = LossDiagnosis(self._adapter, self._recorder, tensor, root=None, end=None)
            self._named.append(diagnosis.explain(tensor, name))

    def stepped(self, held: Iterable[Any], location: Location | None) -> None:
        """Note that an optimizer has stepped with the tensors in `held`, after the backward called at `location`."""
        self._optimized = True
        for tensor in held:
            if id(tensor) in self._answers:
                self._wanted[id(tensor)] = location

    def _ask(self, root: Any, end: Any, loss: Any, location: Location | None, frames: Sequence[FrameType]) -> None:
        parameters = self._recorder.parameters()
        self._total = max(self._total, len(parameters))
        paths = self._names.paths()
        for model in self._recorder.models():
            diagnosis, replaced = None, set[int]()
            for path, tensor in self._adapter.named_parameters(model):
                if self._adapter.is_leaf(tensor) is False:
                    continue  # in meta-learning a result may stand in the place of a parameter
                answers = self._answers_of(tensor)
                if loss is None and self._has_gradient(tensor):
                    self._spared[id(tensor)] = weakref.ref(tensor)
                    continue
                if location in answers:
                    continue
                if diagnosis is None:
                    frames = frames or list(user_frames(sys._getframe(1)))
                    diagnosis = LossDiagnosis(
                        self._adapter, self._recorder, model, root=root, end=end, loss=loss, frames=frames
                    )
                    replaced = self._replaced_in(model)
                if id(tensor) in replaced:
                    self._replaced.add(id(tensor))
                self._since.setdefault(id(tensor), self._recorder.backwards)
                answer = answers[location] = diagnosis.explain(tensor, paths.get(id(tensor), path))
                if _is_unused(answer) and self._is_of_package(model, path):
                    self._spare.add(id(tensor))

    def _is_of_package(self, model: Any, path: str) -> bool:
        """Whether the innermost module around a parameter that is no framework's, and has run, is a package's."""
        modules = dict(self._adapter.named_modules(model))
        owner = path
        while owner:
            owner = module_of_parameter(owner)
            module = modules.get(owner)
            source = getattr(sys.modules.get(type(module).__module__), "__file__", None) or ""
            if module is None or is_library_file(source):
                continue
            if not is_installed_file(source):
                return False
            if self._recorder.ran(module):
                return True
        return False

    def _has_gradient(self, tensor: Any) -> bool:
        """Whether a backward has given a parameter its gradient, or a hook has: so does a program that shards it."""
        return self._recorder.accumulated(tensor) is not None or self._adapter.leaf_grad(tensor) is not None

    def _replaced_in(self, model: Any) -> set[int]:
        """Return the ids of the parameters in whose place others have been when their module was called."""
        modules = [module for _, module in self._adapter.named_modules(model) if self._recorder.lent(module)]
        return {id(tensor) for module in modules for tensor in tables_of(module)[0].values()}

    def _answers_of(self, tensor: Any) -> dict[Location | None, NoGradient]:
        reference, answers = self._answers.get(id(tensor), (None, {}))
        if reference is None or reference() is not tensor:
            answers = {}
            self._replaced.discard(id(tensor))
            self._spare.discard(id(tensor))
            self._since.pop(id(tensor), None)
            self._answers[id(tensor)] = (weakref.ref(tensor), answers)
        return answers

    def report(self) -> GradientReport:
        """Return the parameters that no backward has given a gradient; frozen ones where that is why one failed.

        What a package's own forward leaves out is left out.
        """
        kept = [answer for identity, answer in self._last_answers() if identity not in self._spare]
        if not self._refused or any(answer.reason is not Reason.FROZEN for answer in kept):
            kept = [answer for answer in kept if answer.reason is not Reason.FROZEN]
        return GradientReport((*self._named, *kept), max(self._total, len(self._named)))

    def since(self) -> int:
        """Return the number of the first backward that has left one of them out; 0 where none has run."""
        return min((self._since.get(identity, 0) for identity, _ in self._last_answers()), default=0)

    def frozen(self) -> tuple[str, ...]:
        """Return the names of the parameters that want no gradient."""
        return tuple(answer.name for _, answer in self._last_answers() if answer.reason is Reason.FROZEN)

    def spare(self) -> tuple[str, ...]:
        """Return the names of the parameters that a model of an installed package has and does not use itself."""
        return tuple(answer.name for identity, answer in self._last_answers() if identity in self._spare)

    def _last_answers(self) -> Iterator[tuple[int, NoGradient]]:
        """Yield the ids of the parameters that have no gradient, each with why."""
        for identity, (reference, answers) in self._answers.items():
            # The program may be over, and its parameters gone.
            accumulated = self._recorder.has_accumulated(identity, reference)
            reached = accumulated or self._spared.get(identity) is reference
            if not answers or (reached and not self._refused):
                continue
            answer = answers.get(self._wanted.get(identity), next(iter(answers.values())))
            unheld = identity not in self._wanted and not self._refused
            meant = identity in self._replaced or (self._optimized and answer.reason in _MEANT)
            if not (unheld and meant):
                yield identity, answer
