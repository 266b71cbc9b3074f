"""What docs/dap.md shows is what a session with the adapter prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

from gradscope.inspect.dap.request_arguments import AttachArguments, LaunchArguments

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "dap.md").read_text(encoding="utf-8")


def test_a_script_can_be_the_editor():
    ((source, shown),) = re.findall(r"```python\n((?:.*\n)*?)```\n\n```\n((?:.*\n)*?)```", PAGE)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=ROOT, env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout == shown


def test_every_argument_is_told():
    for kind in (LaunchArguments, AttachArguments):
        for field in kind.__struct_encode_fields__:
            assert f"`{field}`" in PAGE
