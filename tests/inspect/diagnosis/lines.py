"""Which line of a test file has a mark: `# HERE: name` at its end."""

from __future__ import annotations

from pathlib import Path


def line(filename: str, mark: str) -> int:
    """Return the number of the line that ends with ``# HERE: mark``."""
    lines = Path(filename).read_text(encoding="utf-8").splitlines()
    found = [number for number, text in enumerate(lines, 1) if text.endswith(f"# HERE: {mark}")]
    assert len(found) == 1, f"{mark} is marked {len(found)} times"
    return found[0]
