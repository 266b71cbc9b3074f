"""Geometry of memory."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gradscope as gs
from gradscope.runtime.memory import device, storage
from gradscope.runtime.memory.storage import is_viewable, shared_shape, strided_view
from tests.strict_arrays import to_strict


@st.composite
def strided(draw):
    """Draw an array of odd strides and another shape for its elements."""
    shape = draw(st.lists(st.sampled_from([0, 1, 1, 2, 3, 4, 6]), max_size=4))
    array = np.zeros(shape).transpose(draw(st.permutations(range(len(shape)))))
    if array.ndim and draw(st.booleans()):
        array = array[::2]
    if draw(st.booleans()):
        array = np.broadcast_to(array[None], (draw(st.integers(1, 3)), *array.shape))
    sizes, left = [], array.size
    while left > 1:
        sizes.append(draw(st.sampled_from([size for size in range(2, left + 1) if left % size == 0])))
        left //= sizes[-1]
    sizes += [0] * (array.size == 0) + [1] * draw(st.integers(0, 2))
    return array, tuple(draw(st.permutations(sizes)))


@given(strided())
def test_a_view_of_another_shape_is_possible_where_numpy_needs_no_copy(drawn):
    array, shape = drawn
    view = array.reshape(shape)
    assert is_viewable(array, shape) == (array.size == 0 or np.shares_memory(view, array))


def test_a_foreign_part_of_an_array_is_a_storage_of_its_own():
    whole = np.arange(10.0)
    x = gs.from_numpy(whole[2:8:2])
    assert (x.tolist(), x.storage_offset(), len(x.untyped_storage())) == ([2.0, 4.0, 6.0], 0, 40)
    assert x.as_strided((2,), (1,), 3).tolist() == [5.0, 6.0]
    with pytest.raises(RuntimeError, match="requiring a storage size of 48 are out of bounds for storage of size 40"):
        x.as_strided((2,), (1,), 4)
    x.fill_(-1.0)
    assert whole.tolist() == [0.0, 1.0, -1.0, 3.0, -1.0, 5.0, -1.0, 7.0, 8.0, 9.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda m, a: m.from_numpy(a[5:]),
        lambda m, a: m.as_tensor(a[5:]),
        lambda m, a: m.asarray(a[5:]),
        lambda m, a: m.from_dlpack(a[5:8]),
        lambda m, a: m.from_dlpack(m.from_numpy(a)[1::3]),
        lambda m, a: m.from_numpy(np.broadcast_to(a[:2], (3, 2)).copy()[:, 1]),
        lambda m, a: m.from_numpy(a.reshape(2, 5).T),
        lambda m, a: m.from_numpy(a[5:5]),
        lambda m, a: m.from_numpy(np.zeros(40, "u1")[1:33].view("f8")),
        lambda m, a: m.from_numpy(a[::-1]),
        lambda m, a: m.from_numpy(np.zeros(3, dtype=[("tag", "i1"), ("value", "f8")])["value"]),
        lambda m, a: m.from_numpy(a.astype(">f8")),
        lambda m, a: m.from_numpy(a).resize_(11),
        lambda m, a: m.from_numpy(a[:4]).resize_(5),
        lambda m, a: m.from_numpy(a).resize_(3),
    ],
)
@pytest.mark.torch
def test_foreign_memory_is_taken_as_pytorch_takes_it(torch, make):
    def facts(m):
        try:
            x = make(m, np.arange(10.0))
        except Exception as error:
            return type(error)
        return x.tolist(), x.stride() if x.numel() else None, x.storage_offset(), len(x.untyped_storage())

    assert facts(gs) == facts(torch)


def test_a_foreign_part_of_an_array_elsewhere_is_a_storage_of_its_own():
    whole = to_strict(np.arange(10.0))
    x = gs.as_tensor(whole[2:8:2])
    assert (x.tolist(), x.storage_offset(), len(x.untyped_storage())) == ([2.0, 4.0, 6.0], 0, 40)
    assert x.as_strided((2,), (1,), 3).tolist() == [5.0, 6.0]
    with pytest.raises(RuntimeError, match="requiring a storage size of 48 are out of bounds for storage of size 40"):
        x.as_strided((2,), (1,), 4)
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        x.resize_(6)
    x.fill_(-1.0)
    assert gs.as_tensor(whole).tolist() == [0.0, 1.0, -1.0, 3.0, -1.0, 5.0, -1.0, 7.0, 8.0, 9.0]


@pytest.fixture
def cupy_on_host(monkeypatch):
    """Return what makes a CuPy array in the memory of a host array, which needs no device until something computes."""
    cupy = pytest.importorskip("cupy")
    backend = device.CudaBackend()
    backend.module = cupy
    monkeypatch.setitem(device._by_type, cupy.ndarray, backend)
    monkeypatch.setitem(device._modules, cupy.ndarray, cupy)

    def make(host):
        memory = cupy.cuda.UnownedMemory(host.ctypes.data, host.nbytes, host, 0)
        return cupy.ndarray(host.shape, host.dtype, cupy.cuda.MemoryPointer(memory, 0))

    return make


def test_cupy_arrays_are_adopted_as_host_arrays_are(cupy_on_host):
    whole = cupy_on_host(np.arange(10.0))
    x = gs.as_tensor(whole[2:8:2])
    assert (x.stride(), x.storage_offset(), len(x.untyped_storage())) == ((2,), 0, 40)
    assert x.data_ptr() == whole.data.ptr + 16
    with pytest.raises(RuntimeError, match="requiring a storage size of 48 are out of bounds for storage of size 40"):
        x.as_strided((2,), (1,), 4)
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        x.resize_(6)


def test_cupy_views_by_strides_lie_in_the_storage_of_their_base(cupy_on_host):
    x = gs.as_tensor(cupy_on_host(np.arange(12.0).reshape(4, 3)))
    part = x[1:].as_strided((2, 2), (3, 1), 4)
    again = part.as_strided((2,), (5,), 1)
    offsets = [(t.storage_offset(), len(t.untyped_storage())) for t in (part, part[1:], again, x[3:3])]
    assert offsets == [(4, 96), (7, 96), (1, 96), (9, 96)]
    assert storage.shared_part(again._array, x._array) in ("part", "")
    assert storage.overlaps_itself(x.as_strided((2, 2), (1, 1))._array)


def test_a_mapped_file_is_reached_up_to_its_ends(tmp_path):
    path = tmp_path / "numbers"
    np.arange(8.0).tofile(path)
    x = gs.from_numpy(np.memmap(path, "f8", "r+", shape=(8,))[2:6])
    assert x.as_strided((2,), (3,), 0).tolist() == [2.0, 5.0]
    for offset in (1, -1):
        with pytest.raises(RuntimeError):
            x.as_strided((2,), (3,), offset)
    x.zero_()
    assert np.fromfile(path, "f8").tolist() == [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 6.0, 7.0]


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_storage_of_any_owner_is_viewed_flat(order):
    owner = np.asarray(np.arange(6).reshape(2, 3), order=order)
    flat = strided_view(owner[1:], ((6,), (1,), 0))
    assert flat.tolist() == owner.ravel("K").tolist()
    assert np.shares_memory(flat, owner)
    assert strided_view(owner[1:], ((48,), (1,), 0), np.dtype("u1")).nbytes == owner.nbytes


def test_equal_shapes_are_one_tuple_and_few_are_kept(monkeypatch):
    monkeypatch.setattr(storage, "_SHAPES", {})
    monkeypatch.setattr(storage, "_SHAPES_KEPT", 3)
    one = shared_shape(np.zeros((2, 3)).shape)
    assert shared_shape(np.zeros((2, 3)).shape) is one
    for size in range(10):
        assert shared_shape((size,)) == (size,)
    assert len(storage._SHAPES) <= 3


@pytest.mark.parametrize(
    "part",
    [
        lambda m, x: x[3:3],
        lambda m, x: x[1:, 2:2],
        lambda m, x: x.narrow(0, 2, 0),
        lambda m, x: x[4:],
        lambda m, x: x[1][3:3],
        lambda m, x: x[3:1],
        lambda m, x: x.split([2, 0, 2])[1],
        lambda m, x: x[:, 1:].split([0, 2], 1)[0],
        lambda m, x: x.split([4, 0])[1],
        lambda m, x: x[3:3].T,
        lambda m, x: x[3:3].view(3, 0),
        lambda m, x: x[3:3].detach(),
        lambda m, x: x[3:3].expand(2, 0, 3),
        lambda m, x: m.as_strided(x, (0, 3), (3, 1), 5),
        lambda m, x: x[3:3].select(1, 2),
        lambda m, x: x[-1:-1],
        lambda m, x: x[1:1:2],
        lambda m, x: x[3:3].view(m.int32),
        lambda m, x: x[3:3].detach().resize_(1, 3),
        lambda m, x: x[2:2].detach().resize_(1, 3),
        lambda m, x: x[2:2].diagonal(),
        lambda m, x: x.diagonal(5),
        lambda m, x: x[2:2].unfold(1, 2, 1),
        lambda m, x: m.zeros(0).set_(x[3:3]),
        lambda m, x: m.as_strided(x[3:3], (1,), (1,)),
        lambda m, x: m.view_as_complex(m.zeros(4, 2))[2:2].real,
        lambda m, x: m.view_as_complex(m.zeros(4, 2))[2:2].imag,
        lambda m, x: m.view_as_real(m.zeros(4, dtype=m.complex64)[3:3]),
        lambda m, x: x[3:3].unsqueeze(0),
        lambda m, x: x[3:3].unsqueeze(1).squeeze(),
        lambda m, x: x[3:3].reshape(-1),
        lambda m, x: x[2:][1:1],
        lambda m, x: x[2:][:0][:, 1:],
        lambda m, x: x.T[1:1],
        lambda m, x: x.unsqueeze(0).expand(2, 4, 3)[1:1],
        lambda m, x: x.unfold(0, 2, 2)[2:],
        lambda m, x: x.tensor_split([1, 1])[1],
        lambda m, x: x.bfloat16()[2:2],
        lambda m, x: x[None, 2:2, ..., 1:],
        lambda m, x: x[3:3].chunk(2)[1],
        lambda m, x: x.to(m.complex64)[2:2].conj(),
        lambda m, x: x.to(m.complex64).conj()[2:2].real,
        lambda m, x: x.to(m.complex64).conj()[2:2].imag,
    ],
)
@pytest.mark.torch
def test_what_has_no_elements_has_the_offset_that_pytorch_gives_it(torch, part):
    def facts(m):
        x = part(m, m.arange(12.0).reshape(4, 3))
        return x.storage_offset(), x.tolist(), x.untyped_storage().nbytes()

    assert facts(gs) == facts(torch)


def test_an_empty_part_keeps_its_offset_elsewhere(other_device):
    x = gs.arange(12.0, device=other_device).reshape(4, 3)
    assert [part.storage_offset() for part in (x[3:3], x[1:, 2:2], x.split([2, 0, 2])[1])] == [9, 5, 6]


@pytest.mark.parametrize(
    "change",
    [
        lambda m, x: x[1:],
        lambda m, x: x[2:].as_strided((2,), (1,), 1),
        lambda m, x: x[2:].resize_(3),
        lambda m, x: x[2:].resize_(6),
        lambda m, x: x.view(m.int16)[1:],
    ],
)
@pytest.mark.torch
def test_bfloat16_lies_in_its_storage_as_other_elements(torch, change):
    def facts(m):
        x = change(m, m.arange(6.0).bfloat16())
        return x[:2].tolist(), x.storage_offset(), x.untyped_storage().nbytes()

    assert facts(gs) == facts(torch)


@pytest.mark.torch
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from([0, 1, 1, 2, 3])), max_size=4).map(
        lambda dims: (tuple(size for size, _ in dims), tuple(step for _, step in dims))
    )
)
def test_a_copy_lies_in_pytorchs_order(torch, layout):
    def orders(module):
        x = module.arange(40.0).as_strided(*layout)
        copies = x.clone(), module.empty_like(x), module.zeros_like(x)
        return [[step for size, step in zip(y.shape, y.stride(), strict=True) if size > 1] for y in copies]

    assert orders(gs) == orders(torch)


def test_of_two_dimensions_of_one_stride_the_smaller_lies_inside_of_a_copy():
    parts = gs.arange(6.0).unfold(0, 2, 1)
    assert parts.stride() == parts.T.stride() == (1, 1)
    assert parts.clone().stride() == (2, 1)
    assert parts.T.clone().stride() == (1, 2)
    assert parts.T.clone().tolist() == parts.T.tolist()
