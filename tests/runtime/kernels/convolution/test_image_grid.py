"""Where pixels lie in a flat grid: every tap meets those that the definition of a convolution says."""

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from gradscope.runtime.kernels.convolution.image_grid import input_products, window_product

AXES = st.lists(
    st.tuples(st.integers(1, 7), st.integers(1, 4), st.integers(1, 3), st.integers(0, 4), st.integers(1, 3)).filter(
        lambda a: a[0] + 2 * a[3] > a[4] * (a[1] - 1)
    ),
    min_size=1,
    max_size=2,
)


def geometry(axes):
    """Return sizes of images, of kernels and of results, strides, paddings and dilations."""
    spatial, kernel, stride, padding, dilation = (tuple(values) for values in zip(*axes, strict=True))
    out = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in axes)
    return spatial, kernel, out, stride, padding, dilation


def laid(grid, places):
    """Return the flat grid of two images, with what is at each place of an image, and None between."""
    phase = 2 * grid.area
    cells = [None] * (grid.phases * phase)
    for piece in grid.pieces:
        axes = [range(size)[part] for size, part in zip(places, piece.image, strict=True)]
        at = [range(size)[part] for size, part in zip(grid.sizes, piece.grid, strict=True)]
        assert [len(a) for a in axes] == [len(a) for a in at]
        for where, cell in zip(itertools.product(*axes), itertools.product(*at), strict=True):
            for image in range(2):
                index = piece.phase * phase + image * grid.area + flat(cell, grid.sizes)
                assert cells[index] is None, "one place is for one pixel"
                cells[index] = (image, where)
    return cells


def flat(place, sizes):
    index = 0
    for at, size in zip(place, sizes, strict=True):
        index = index * size + at
    return index


def met(grid, product, places):
    """Yield an image, a pixel of the result, a tap, and the pixel of the source that it meets: None for a zero."""
    cells = laid(grid, places)
    for image, pixel in itertools.product(range(2), itertools.product(*map(range, product.counts))):
        start = image * grid.area + flat(pixel, grid.sizes)
        for tap, (phase, distance) in zip(product.taps, product.sources, strict=True):
            index = phase * 2 * grid.area + distance + start
            yield image, pixel, tap, cells[index] if index < len(cells) else None


@given(AXES)
def test_windows_meet_the_pixels_of_the_definition(settings):
    spatial, kernel, out, stride, padding, dilation = geometry(settings)
    grid, product = window_product(spatial, kernel, out, stride, padding, dilation)
    taps = list(itertools.product(*map(range, kernel)))
    assert product.counts == out
    for image, pixel, tap, found in met(grid, product, spatial):
        axes = zip(pixel, taps[tap], stride, padding, dilation, strict=True)
        source = tuple(i * s + t * d - p for i, t, s, p, d in axes)
        inside = all(0 <= at < size for at, size in zip(source, spatial, strict=True))
        assert found == ((image, source) if inside else None)


@given(AXES)
def test_gradients_of_inputs_meet_every_window_that_a_pixel_is_in(axes):
    spatial, kernel, out, stride, padding, dilation = geometry(axes)
    grid, products = input_products(spatial, kernel, out, stride, padding, dilation)
    taps = list(itertools.product(*map(range, kernel)))
    expected = {}
    for at, (tap, place) in itertools.product(itertools.product(*map(range, out)), enumerate(taps)):
        pixel = tuple(i * s + t * d - p for i, t, s, p, d in zip(at, place, stride, padding, dilation, strict=True))
        if all(0 <= a < n for a, n in zip(pixel, spatial, strict=True)):
            expected[pixel, tap] = at
    seen = {}
    for product in products:
        lines = [range(size)[part] for size, part in zip(spatial, product.image, strict=True)]
        assert product.counts == tuple(map(len, lines))
        for image, pixel, tap, found in met(grid, product, out):
            place = tuple(line[at] for line, at in zip(lines, pixel, strict=True))
            if found is not None:
                assert found[0] == image
                seen[place, tap] = found[1]
    assert seen == expected


def test_rows_share_their_padding():
    grid, product = window_product((8, 8), (3, 3), (8, 8), (1, 1), (1, 1), (1, 1))
    assert (grid.sizes, product.sources) == ((9, 9), tuple((0, 9 * i + j) for i in range(3) for j in range(3)))


def test_a_step_splits_images_into_phases():
    grid, product = window_product((8,), (3,), (4,), (2,), (1,), (1,))
    assert grid.phases == 2
    assert product.sources == ((0, 0), (1, 0), (0, 1))
    assert math.prod(grid.sizes) == 5
