"""A hook of MkDocs: the pages of the API reference, made from what the packages name in ``__all__``.

An operator's function is made from its declaration when the package is imported; what stands in ``gradscope`` itself is
therefore read from the imported package, and goes to one page for each folder of :mod:`gradscope.runtime.ops`, and one
for what is no operator.
"""

from __future__ import annotations

from collections import defaultdict
from importlib import import_module
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import gradscope

__all__ = ["PACKAGES", "names_of_gradscope", "on_files", "public_objects"]

# The modules on each page; the page has the name of the first.
PACKAGES = (
    ("autograd", "autograd.functional", "autograd.forward_ad", "autograd.graph"),
    ("nn",),
    ("nn.functional",),
    ("nn.init",),
    ("nn.utils", "nn.utils.rnn", "nn.utils.parametrize"),
    ("optim", "optim.lr_scheduler", "optim.swa_utils"),
    ("amp",),
    ("func",),
    ("distributions",),
    ("utils.data", "utils.checkpoint", "utils.hooks"),
    ("serialization",),
    ("fft",),
    ("linalg",),
    ("special",),
    ("signal.windows",),
    ("masked",),
    ("random",),
    ("cuda",),
    ("profiler",),
    ("overrides",),
    ("inspect",),
    ("check",),
    ("testing", "testing.strategies"),
)

# The folders of families of operators, each of which has a page; "tensors" is the page of what is no operator.
OPERATORS = "gradscope.runtime.ops."
TENSORS = "tensors"

TENSOR = """\
# Tensor

In-place forms (`add_`, `relu_`) are not listed: what they do is what their operator does, into the tensor's memory.

::: gradscope.Tensor
    options:
      inherited_members: true
      filters: ["!^_", "!_$"]
"""


def public_objects(module: str) -> list[str]:
    """Return the paths of what a module names in ``__all__``, without the modules among it."""
    package = import_module(module)
    names = [name for name in package.__all__ if not name.startswith("_")]
    return [_path(module, name) for name in names if not isinstance(getattr(package, name), ModuleType)]


def _path(module: str, name: str) -> str:
    """Return where a name is described: where a module has the function's name, in the module."""
    value: Any = getattr(import_module(module), name)
    return f"{module}.{name}.{name}" if getattr(value, "__module__", None) == f"{module}.{name}" else f"{module}.{name}"


def names_of_gradscope() -> dict[str, list[str]]:
    """Return the paths of what ``gradscope`` itself has, by the page on which they stand."""
    pages: dict[str, list[str]] = defaultdict(list)
    dir(gradscope)  # which loads all names
    for name, value in sorted(vars(gradscope).items()):
        module = getattr(value, "__module__", None) or ""
        if name.startswith("_") or name.endswith("_") or not module.startswith("gradscope.") or name == "Tensor":
            continue
        page = module.removeprefix(OPERATORS).partition(".")[0] if module.startswith(OPERATORS) else TENSORS
        pages[page].append(f"gradscope.{name}")
    return pages


def _title(page: str) -> str:
    if page == TENSORS:
        return "Creating tensors; dtypes, devices, modes"
    described = import_module(OPERATORS + page).__doc__ or ""
    return f"Operators: {described.splitlines()[0].removesuffix('.')}"


def _entries(paths: list[str], level: int) -> str:
    return "".join(f"\n::: {path}\n    options: {_options(path, level)}\n" for path in paths)


def _options(path: str, level: int) -> dict[str, Any]:
    """Return how an object is shown; what an instrument's class can do is partly written in bases without a page."""
    inherited = path.startswith(("gradscope.inspect.", "gradscope.check."))
    return {"heading_level": level, "inherited_members": inherited}


def _page_of_modules(modules: tuple[str, ...]) -> str:
    parts = [f"# {modules[0]}\n"]
    for name in modules:
        module = f"gradscope.{name}"
        parts.append(f"\n::: {module}\n    options: {{members: false}}\n{_entries(public_objects(module), 3)}")
    return "".join(parts)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages to those that are files, and to the navigation."""
    pages = {"gradscope.Tensor": TENSOR}
    pages |= {f"gradscope.{modules[0]}": _page_of_modules(modules) for modules in PACKAGES}
    for room, paths in names_of_gradscope().items():
        pages[f"gradscope-{room}"] = f"# {_title(room)}\n{_entries(paths, 2)}"
    for name, content in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    config.nav.append({"API reference": [f"reference/{name}.md" for name in pages]})
    return files
