"""Which PyTorch is too old."""

import pytest

from gradscope.inspect.adapters.torch.torch_version import check_version


@pytest.mark.parametrize("version", ["2.4.0", "2.13.0+cpu", "2.14.0a0+git1", "10.0"])
def test_a_version_that_is_opened(version):
    check_version(version)


@pytest.mark.parametrize("version", ["2.3.1", "1.13.1+cu117", "0.4.1"])
def test_a_version_that_is_too_old_is_told_with_the_oldest(version):
    with pytest.raises(ImportError, match=r"of PyTorch 2\.4 and newer, this is PyTorch .*\nInstall a newer one"):
        check_version(version)
