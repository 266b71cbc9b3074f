"""Every example in a docstring prints what it says, and every entry says more than the annotation beside it."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import linecache
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradscope
import gradscope_tui


def modules_of(package: str, folder: str) -> Iterator[str]:
    top = Path(folder).parent
    for path in sorted(top.rglob("*.py")):
        if path.stem != "__main__":
            yield ".".join((package, *path.relative_to(top).with_suffix("").parts)).removesuffix(".__init__")


ROOT = Path(gradscope.__file__).parent
MODULES = [*modules_of("gradscope", gradscope.__file__), *modules_of("gradscope_tui", gradscope_tui.__file__)]

# How many examples there are at least in modules whose users learn from them.
EXAMPLES = {
    "gradscope.distributions.constraint_registry": 4,
    "gradscope.distributions.continuous": 2,
    "gradscope.distributions.continuous_bernoulli": 3,
    "gradscope.distributions.counts": 2,
    "gradscope.distributions.discrete": 6,
    "gradscope.distributions.exponential_family": 3,
    "gradscope.distributions.generalized_pareto": 2,
    "gradscope.distributions.independent": 3,
    "gradscope.distributions.kl": 3,
    "gradscope.distributions.matrices": 4,
    "gradscope.distributions.mixture": 4,
    "gradscope.distributions.multivariate": 2,
    "gradscope.distributions.transformed_distribution": 7,
    "gradscope.distributions.von_mises": 3,
    "gradscope.fft": 7,
    "gradscope.func.batches": 5,
    "gradscope.func.jacobians": 6,
    "gradscope.func.grad_vjp_jvp": 12,
    "gradscope.masked": 5,
    "gradscope.nn.utils.init": 2,
    "gradscope.nn.utils.orthogonal": 3,
    "gradscope.nn.utils.parametrize": 4,
    "gradscope.nn.utils.stateless": 4,
    "gradscope.random": 4,
    "gradscope.runtime.ops.linalg.cholesky_and_triangular": 4,
    "gradscope.runtime.ops.linalg.determinant_and_inverse": 2,
    "gradscope.runtime.ops.linalg.ldl": 3,
    "gradscope.runtime.ops.linalg.lu": 3,
    "gradscope.runtime.ops.linalg.matrix_products": 4,
    "gradscope.runtime.ops.linalg.qr": 3,
    "gradscope.runtime.ops.linalg.svd_and_eigen": 2,
    "gradscope.runtime.ops.linalg.svd_lowrank": 4,
    "gradscope.runtime.ops.reduce.histograms": 7,
    "gradscope.serialization.saving": 6,
    "gradscope.signal.windows": 3,
    "gradscope.special": 3,
    "gradscope.utils.checkpoint": 10,
    "gradscope.utils.checkpoint.logs": 1,
    "gradscope.utils.data.collation": 3,
    "gradscope.utils.data.dataset": 4,
    "gradscope.utils.data.loader": 3,
    "gradscope.utils.data.sampler": 2,
}


# Modules that only a notebook, a browser's server or a GPU has use for, and what they need.
NEEDED = {
    "gradscope.inspect.adapters.torch.device.device_kernel": "triton",
    "gradscope.notebook.debugger_widget": "anywidget",
    "gradscope.notebook.magics": "IPython",
    "gradscope.notebook.tensor_html": "treescope",
    "gradscope_tui.browser.page_server": "aiohttp",
}


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A debugger that doctest sets up for each example asks of all files that were ever shown whether they have changed.
    monkeypatch.setattr(linecache, "checkcache", lambda filename=None: None)
    if ".torch" in name:
        pytest.importorskip("torch")
    if ".kernels.compiled." in name:
        pytest.importorskip("numba")
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder().find(module):
        runner.run(test)
    assert runner.failures == 0
    assert runner.tries >= EXAMPLES.get(name, 0)


def test_the_modules_whose_users_learn_from_examples_are_there() -> None:
    assert EXAMPLES.keys() <= set(MODULES)


SECTION = re.compile(r"^(?:Parameters|Other Parameters|Attributes|Returns|Yields|Raises|Warns)\n-+\n", re.MULTILINE)
NEXT_SECTION = re.compile(r"^\w[\w ]*\n-{3,}$", re.MULTILINE)
SOURCES = sorted([*ROOT.rglob("*.py"), *(ROOT.parent / "tui").rglob("*.py")])


def folder_of(path: Path) -> str:
    """Return the package of a source, or the folder in it: ``gradscope/nn``."""
    return "/".join(path.relative_to(ROOT.parent).parts[:-1][:2])


def entries(docstring: str) -> Iterator[tuple[str, str]]:
    """Yield what stands at the margin of a docstring's sections, and the indented lines below it."""
    for section in SECTION.finditer(docstring):
        rest = docstring[section.end() :]
        following = NEXT_SECTION.search(rest)
        for entry in re.finditer(
            r"^(\S.*)\n?((?:[ ]+.*\n?|\n(?=[ ]))*)", rest[: following and following.start()], re.MULTILINE
        ):
            yield entry[1], entry[2].strip()


def repeated_annotations(source: str) -> list[str]:
    """Return the entries without a description, but those that list the values that are allowed."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            docstring = inspect.cleandoc(ast.get_docstring(node) or "")
            found += [
                f"{node.name}, line {node.lineno}: {head}"
                for head, description in entries(docstring)
                if not description and "{" not in head
            ]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("folder", sorted({folder_of(path) for path in SOURCES}))
def test_no_entry_only_repeats_the_annotation_in(folder: str) -> None:
    found = {
        path.relative_to(ROOT.parent): repeated_annotations(path.read_text(encoding="utf-8"))
        for path in SOURCES
        if folder_of(path) == folder
    }
    assert {path: entries for path, entries in found.items() if entries} == {}


def test_an_entry_without_a_description_is_found() -> None:
    source = '''
def scale(x: Tensor, by: float, mode: str) -> Tensor:
    """Scale.

    Parameters
    ----------
    x : Tensor
        Of any shape.
    by : float
    mode : {"up", "down"}

    Returns
    -------
    Tensor
    """
'''
    assert repeated_annotations(source) == ["scale, line 2: by : float", "scale, line 2: Tensor"]


PUBLIC_PACKAGES = [
    "",
    "autograd",
    "autograd.functional",
    "autograd.forward_ad",
    "autograd.graph",
    "nn",
    "nn.functional",
    "nn.init",
    "nn.utils",
    "nn.utils.parametrizations",
    "nn.utils.parametrize",
    "nn.utils.prune",
    "nn.utils.rnn",
    "optim",
    "optim.lr_scheduler",
    "optim.swa_utils",
    "inspect",
    "check",
    "testing",
    "amp",
    "func",
    "fft",
    "linalg",
    "special",
    "utils.data",
    "utils.checkpoint",
    "serialization",
    "distributions",
    "random",
    "masked",
]


def names_of(package: str) -> Iterator[tuple[str, object]]:
    """Yield the public functions and classes of a package; an in-place form does what its operator does."""
    module = importlib.import_module(f"gradscope.{package}".rstrip("."))
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    for name in names:
        value = getattr(module, name)
        own = str(getattr(value, "__module__", "")).startswith("gradscope")
        if callable(value) and own and not (name.endswith("_") and package in ("", "nn.functional")):
            yield name, value


@pytest.mark.parametrize("package", PUBLIC_PACKAGES)
def test_public_names_show_an_example_in(package: str) -> None:
    assert [name for name, value in names_of(package) if ">>>" not in (inspect.getdoc(value) or "")] == []


# Public names beside which nobody looks for another.
ALONE = {"load_ipython_extension", "unload_ipython_extension"}

SEE_ALSO = re.compile(r"^See Also\n-{3,}\n((?:.+\n?)+)", re.MULTILINE)


def neighbours(docstring: str) -> list[str]:
    """Return the names in the section "See Also"."""
    section = SEE_ALSO.search(docstring)
    lines = section[1].splitlines() if section else []
    return [name.strip() for line in lines if not line.startswith(" ") for name in line.partition(" : ")[0].split(",")]


def leads_somewhere(name: str, place: object) -> bool:
    """Whether a dotted name can be followed from a package, a class or the globals of a function."""
    for part in name.split("."):
        if not hasattr(place, part):
            return False
        place = getattr(place, part)
    return True


@pytest.mark.parametrize("package", PUBLIC_PACKAGES)
def test_public_names_show_what_else_to_look_at_in(package: str) -> None:
    assert [
        name for name, value in names_of(package) if name not in ALONE and not neighbours(inspect.getdoc(value) or "")
    ] == []


@pytest.mark.parametrize("package", PUBLIC_PACKAGES)
def test_what_else_to_look_at_is_there_in(package: str) -> None:
    here = importlib.import_module(f"gradscope.{package}".rstrip("."))
    gone = []
    for name, value in names_of(package):
        places = [gradscope, here, inspect.getmodule(value), value]
        gone += [
            f"{name}: {other}"
            for other in neighbours(inspect.getdoc(value) or "")
            if not any(leads_somewhere(other.removeprefix("gradscope."), place) for place in places)
        ]
    assert gone == []
