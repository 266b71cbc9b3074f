from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import msgspec
import pytest

from gradscope import __version__
from gradscope.inspect.dap.request_arguments import AttachArguments, LaunchArguments

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "editors" / "vscode"
CLIENT = "@vscode/debugadapter-testsupport"

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the extension is not part of this distribution")


@pytest.fixture
def package():
    return json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))


def test_it_has_the_version_and_the_license_of_the_project(package):
    assert package["version"] == __version__.partition("+")[0]
    assert (FOLDER / "LICENSE").read_text(encoding="utf-8") == (ROOT / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.parametrize(("request_", "kind"), [("launch", LaunchArguments), ("attach", AttachArguments)])
def test_a_configuration_takes_what_the_adapter_takes(package, request_, kind):
    (debugger,) = package["contributes"]["debuggers"]
    offered = debugger["configurationAttributes"][request_]["properties"]
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    assert set(offered) == known - {"noDebug"}
    snippets = [snippet["body"] for snippet in debugger["configurationSnippets"]] + debugger["initialConfigurations"]
    for body in (one for one in snippets if one["request"] == request_):
        assert body["type"] == debugger["type"] == "gradscope"
        assert set(body) - {"type", "request", "name"} <= set(offered)


def test_the_client_that_adapters_are_tested_with_finds_nothing():
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    resolved = subprocess.run([node, "-e", f"require.resolve({CLIENT!r})"], cwd=FOLDER, capture_output=True)
    if resolved.returncode:
        pytest.skip(f"{CLIENT} is not installed: npm install --no-package-lock, in editors/vscode")
    environment = {**os.environ, "GRADSCOPE": str(Path(sys.executable).with_name("gradscope"))}
    command = [node, "--test", "test/"]
    done = subprocess.run(command, cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_it_is_packaged(tmp_path):
    vsce = FOLDER / "node_modules" / ".bin" / "vsce"
    if not vsce.exists():
        pytest.skip("vsce is not installed: npm install --no-package-lock, in editors/vscode")
    command = [vsce, "package", "--allow-missing-repository", "--no-dependencies", "--out", tmp_path / "gradscope.vsix"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "gradscope.vsix") as packed:
        names = {name for name in packed.namelist() if name.startswith("extension/")}
    assert names == {f"extension/{name}" for name in ("package.json", "extension.js", "readme.md", "LICENSE.txt")}
