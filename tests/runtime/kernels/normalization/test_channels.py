"""How the channels of images lie in memory."""

import numpy as np

from gradscope.runtime.kernels.normalization.channels import channels_of
from gradscope.runtime.kernels.normalization.columns import Columns
from gradscope.runtime.kernels.normalization.planes import Planes


def test_channels_are_planes_or_columns_as_they_lie_in_memory():
    images = np.zeros((4, 16, 32, 32), "f")
    last = np.zeros((4, 32, 32, 16), "f").transpose(0, 3, 1, 2)
    assert [type(channels_of(x)) for x in (images, last, np.zeros((256, 64)))] == [Planes, Columns, Columns]
    for other in (images[:0], last[:, :, ::2], images.astype("e"), images.swapaxes(0, 1)):
        assert channels_of(other) is None
    assert channels_of(last, np.zeros(16)) is None
