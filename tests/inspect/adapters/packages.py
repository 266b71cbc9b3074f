"""What programs of these tests import besides PyTorch."""

import pytest


def require_models_of_transformers():
    """Skip the test where that package is missing, or asks for a newer PyTorch."""
    transformers = pytest.importorskip("transformers", reason="a model of that package")
    if not transformers.is_torch_available():
        pytest.skip(f"transformers {transformers.__version__} asks for a newer PyTorch")
