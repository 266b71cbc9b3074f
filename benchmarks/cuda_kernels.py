"""What kernels of CUDA C spare on a GPU: ``python benchmarks/cuda_kernels.py``, which needs CuPy and a device.

Each row is a function with its backward, or a step of an optimizer. The figures are microseconds on the wall until the
device has done it: with kernels, with CuPy's own functions alone, and PyTorch's where it is installed with CUDA.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import gradscope as gs
from gradscope.runtime.kernels import cuda_kernels

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "gelu": lambda F, x: F.gelu(x),
    "gelu, tanh": lambda F, x: F.gelu(x, approximate="tanh"),
    "silu": lambda F, x: F.silu(x),
    "softplus": lambda F, x: F.softplus(x),
    "softmax": lambda F, x: F.softmax(x, -1),
    "log_softmax": lambda F, x: F.log_softmax(x, -1),
    "layer_norm": lambda F, x: F.layer_norm(x, x.shape[-1:]),
}
OPTIMIZERS = {
    "SGD, momentum": lambda lib, p: lib.optim.SGD(p, 0.1, momentum=0.9),
    "Adam": lambda lib, p: lib.optim.Adam(p),
}


def steps(lib: Any, rows: int, columns: int) -> dict[str, Callable[[], Any]]:
    """Return what is measured, of one library."""
    x = lib.rand(rows, columns, device="cuda", requires_grad=True)
    g = lib.rand(rows, columns, device="cuda")

    def forward_and_backward(function: Callable[[Any, Any], Any]) -> Callable[[], Any]:
        return lambda: lib.autograd.grad(function(lib.nn.functional, x), x, g)

    def step(make: Callable[[Any, Any], Any]) -> Callable[[], Any]:
        parameter = x.detach().clone().requires_grad_()
        parameter.grad = g
        return make(lib, [parameter]).step

    measured = {name: forward_and_backward(function) for name, function in FUNCTIONS.items()}
    return measured | {name: step(make) for name, make in OPTIMIZERS.items()}


def microseconds(run: Callable[[], Any], synchronize: Callable[[], Any], rounds: int) -> float:
    """Return the median time of one run."""
    for _ in range(3):
        run()
    times = []
    for _ in range(rounds):
        synchronize()
        began = time.perf_counter()
        for _ in range(10):
            run()
        synchronize()
        times.append((time.perf_counter() - began) * 1e5)
    return statistics.median(times)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--shapes", nargs="+", default=["64x64", "4096x1024"])
    arguments = parser.parse_args()
    libraries = {"kernels": gs, "CuPy alone": gs}
    try:
        import torch
    except ImportError:
        torch = None
    if torch is not None and torch.cuda.is_available():
        libraries["torch"] = torch
    print("| float32 | shape | " + " | ".join(libraries) + " |")
    print("| --- | --- |" + " --: |" * len(libraries))
    left_out = cuda_kernels.are_left_out
    for shape in arguments.shapes:
        figures: dict[str, list[float]] = {}
        for column, lib in libraries.items():
            cuda_kernels.are_left_out = (lambda: True) if column == "CuPy alone" else left_out  # type: ignore[assignment]
            for name, run in steps(lib, *map(int, shape.split("x"))).items():
                figures.setdefault(name, []).append(microseconds(run, lib.cuda.synchronize, arguments.rounds))
        for name, row in figures.items():
            print(f"| {name} | {shape} | " + " | ".join(f"{figure:.0f} µs" for figure in row) + " |")


if __name__ == "__main__":
    main()
