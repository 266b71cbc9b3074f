"""How long ``import gradscope`` takes beyond ``import numpy``: the median of several fresh interpreters.

Run it as ``python benchmarks/import_time.py``; the documented figure is at most 150 ms.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

CODE = "import time, numpy; start = time.perf_counter(); import gradscope; print(time.perf_counter() - start)"


def run(caches: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a fresh interpreter that keeps its bytecode in `caches`, whatever the environment says of bytecode."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = caches
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, env=environment)


def measure(caches: str) -> float:
    """Return the seconds one fresh interpreter takes to import gradscope after numpy."""
    return float(run(caches, "-c", CODE).stdout)


def heaviest(caches: str, count: int) -> list[tuple[float, str]]:
    """Return the modules with the largest time of their own, in milliseconds, by ``-X importtime``."""
    text = run(caches, "-X", "importtime", "-c", "import numpy; import gradscope").stderr
    rows = []
    for line in text.splitlines():
        own, _, name = (part.strip() for part in line.removeprefix("import time:").split("|"))
        if name.startswith("gradscope") and own.isdigit():
            rows.append((int(own) / 1000, name))
    return sorted(rows, reverse=True)[:count]


def main() -> None:
    """Print the median and the heaviest modules."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="fresh interpreters to take the median of (default 5)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as caches:
        measure(caches)  # compiles what the others find
        times = [measure(caches) for _ in range(options.runs)]
        rows = heaviest(caches, 8)
    print(f"import gradscope beyond numpy: median {statistics.median(times) * 1000:.0f} ms of {options.runs} runs")
    print(f"  (from {min(times) * 1000:.0f} to {max(times) * 1000:.0f} ms; at most 150 wanted)")
    for own, name in rows:
        print(f"  {own:6.1f} ms  {name}")


if __name__ == "__main__":
    main()
