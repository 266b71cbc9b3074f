"""im2col and its adjoint, beside windows that are cut out one by one."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradscope.runtime.kernels.convolution.im2col import Windows

AXIS = st.tuples(st.integers(1, 6), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.integers(1, 2))


def windows_of(axes):
    spatial, kernel, stride, padding, dilation = zip(*axes, strict=True)
    out = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in axes)
    return Windows(spatial, kernel, out, stride, padding, dilation)


@given(
    st.lists(AXIS.filter(lambda a: a[0] + 2 * a[3] > a[4] * (a[1] - 1)), min_size=1, max_size=3),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_columns_are_the_windows(axes, images, channels):
    windows = windows_of(axes)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((images, channels, *windows.spatial))
    columns = windows.im2col(x)
    by_place = columns.reshape(channels, *windows.kernel, images, *windows.out)
    padded = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in windows.padding)])
    for place in itertools.product(*map(range, windows.out)):
        window = tuple(
            slice(o * s, o * s + d * (k - 1) + 1, d)
            for o, s, d, k in zip(place, windows.stride, windows.dilation, windows.kernel, strict=True)
        )
        np.testing.assert_array_equal(by_place[(..., *place)], np.moveaxis(padded[(..., *window)], 0, -1))
    # <im2col(x), y> = <x, col2im(y)>
    y = rng.standard_normal(columns.shape)
    assert (columns * y).sum() == pytest.approx((x * windows.col2im(y, images)).sum())


def test_windows_beyond_the_padding_meet_zeros():
    windows = Windows((2,), (2,), (3,), (1,), (0,), (1,))
    assert windows.im2col(np.ones((1, 1, 2))).tolist() == [[1, 1, 0], [1, 0, 0]]
    assert windows.col2im(np.ones((2, 3)), 1).tolist() == [[[1, 2]]]
