"""A recording, for the tests of what is made of one."""

import pytest

from tests.inspect.recording.programs import recorded


@pytest.fixture
def recording(tmp_path):
    return recorded(tmp_path / "run.gscope", steps=3)
