"""DataLoader: batches as PyTorch's, in this process and in workers."""

from __future__ import annotations

import gc
import os
import pickle
import random
import time
from itertools import chain
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
from tests.side_by_side import same_complaint

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")


def numbers(batches: Any) -> list[Any]:
    return [batch.tolist() if hasattr(batch, "tolist") else batch for batch in batches]


class Squares(Dataset):
    """Squares of the indices below 11; what happens at 5 is the test's choice."""

    def __init__(self, at_five: Any = None) -> None:
        self.at_five = at_five

    def __len__(self) -> int:
        return 11

    def __getitem__(self, index: int) -> int:
        if index == 5 and self.at_five is not None:
            self.at_five()
        return index * index


class Counting(IterableDataset):
    def __init__(self, count: int = 5) -> None:
        self.count = count

    def __iter__(self) -> Any:
        return iter(range(self.count))


class Shared(IterableDataset):
    """The numbers below 10, each by one worker."""

    def __iter__(self) -> Any:
        info = get_worker_info()
        return iter(range(10) if info is None else range(info.id, 10, info.num_workers))


class Draws(Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        assert info is not None
        return info.id, info.seed, gs.rand(()).item(), random.random(), numpy.random.random()  # noqa: NPY002


# --- without workers --------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 3},
        {"batch_size": 3, "drop_last": True},
        {"batch_size": None},
        {"sampler": [4, 1, 1], "batch_size": 2},
        {"batch_sampler": [[4, 1], [1], [2, 3, 5]]},
        {"batch_size": 4, "collate_fn": sum},
        {"batch_size": None, "sampler": [[3, 4], [1]]},
    ],
)
def test_batches_and_their_number(torch: Any, options: dict[str, Any]) -> None:
    found = []
    for lib in (gs, torch):
        loader = lib.utils.data.DataLoader(lib.arange(11) * 2, **options)
        found.append((numbers(loader), len(loader), loader.batch_size, loader.drop_last))
    assert found[0] == found[1]


@pytest.mark.torch
@pytest.mark.parametrize("options", [{}, {"batch_size": 2}, {"batch_size": 2, "drop_last": True}, {"batch_size": None}])
def test_batches_of_an_iterable(torch: Any, options: dict[str, Any]) -> None:
    theirs = type("Counting", (torch.utils.data.IterableDataset,), {"__iter__": lambda self: iter(range(5))})()
    assert numbers(DataLoader(Counting(), **options)) == numbers(torch.utils.data.DataLoader(theirs, **options))


def _iterable(lib: Any) -> Any:
    return type("Some", (lib.utils.data.IterableDataset,), {"__iter__": lambda self: iter(())})()


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib, L: L([], shuffle=True),
        lambda lib, L: L([1], shuffle=True, sampler=[0]),
        lambda lib, L: L([1], batch_size=2, batch_sampler=[[0]]),
        lambda lib, L: L([1], drop_last=True, batch_sampler=[[0]]),
        lambda lib, L: L([1], batch_size=None, drop_last=True),
        lambda lib, L: L([1], batch_size=0),
        lambda lib, L: L([1], num_workers=-1),
        lambda lib, L: L([1], timeout=-1),
        lambda lib, L: iter(L([1], timeout=1)),
        lambda lib, L: L([1], prefetch_factor=2),
        lambda lib, L: L([1], num_workers=1, prefetch_factor=-2),
        lambda lib, L: L([1], persistent_workers=True),
        lambda lib, L: L([1], multiprocessing_context="spawn"),
        lambda lib, L: L([1], num_workers=1, multiprocessing_context="bogus"),
        lambda lib, L: L([1], num_workers=1, multiprocessing_context=3),
        lambda lib, L: L(_iterable(lib), shuffle=True),
        lambda lib, L: L(_iterable(lib), sampler=[0]),
        lambda lib, L: L(_iterable(lib), batch_sampler=[[0]]),
        lambda lib, L: len(L(_iterable(lib))),
        lambda lib, L: setattr(L([1]), "batch_size", 2),
        lambda lib, L: setattr(L([1]), "dataset", 2),
    ],
)
def test_refusals(torch: Any, wrong: Any) -> None:
    def attempt(lib: Any) -> None:
        # The name of this test's class differs from library to library.
        wrong(lib, lib.utils.data.DataLoader)

    same_complaint(torch, attempt)


@pytest.mark.torch
@pytest.mark.parametrize("indices", [[[2, 0], [-1]], [(3, 3)], [[]], [range(2)]], ids=str)
def test_rows_of_tensors(torch: Any, indices: Any) -> None:
    found = []
    for lib in (gs, torch):
        D = lib.utils.data
        rows = D.TensorDataset(lib.arange(8).reshape(4, 2), lib.arange(4.0))
        try:
            found.append([[part.tolist() for part in batch] for batch in D.DataLoader(rows, batch_sampler=indices)])
        except IndexError as error:
            found.append(str(error).split("\n")[0])
    assert found[0] == found[1]


def test_rows_of_a_tensor_that_requires_grad_are_recorded() -> None:
    x = gs.arange(4.0, requires_grad=True)
    (batch,) = next(iter(DataLoader(gs.utils.data.TensorDataset(x), 2)))
    batch.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 0.0, 0.0]
    with pytest.raises(IndexError):
        list(DataLoader(gs.utils.data.TensorDataset(gs.arange(3)), batch_sampler=[[0, 3]]))


def test_an_error_of_one_batch_leaves_the_others_to_come() -> None:
    def fail() -> None:
        raise ValueError("no five")

    for workers in (0, 1):
        batches = iter(
            DataLoader(Squares(fail), 2, num_workers=workers, multiprocessing_context="fork" * workers or None)
        )
        assert numbers([next(batches), next(batches)]) == [[0, 1], [4, 9]]
        with pytest.raises(ValueError, match="no five"):
            next(batches)
        assert numbers(batches) == [[36, 49], [64, 81], [100]]


def test_a_length_that_is_too_short_is_warned_of() -> None:
    short = type("Short", (Counting,), {"__len__": lambda self: 3})()
    loader = DataLoader(short, batch_size=2)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 3") as caught:
        assert len(list(loader)) == 3
    assert len(caught) == 1


def test_shuffled_batches_are_reproducible() -> None:
    loader = DataLoader(range(40), 7, shuffle=True)
    gs.manual_seed(3)
    first = numbers(loader)
    second = numbers(loader)
    assert first != second
    assert sorted(chain.from_iterable(first)) == list(range(40))
    gs.manual_seed(3)
    assert [numbers(loader), numbers(loader)] == [first, second]
    own = DataLoader(range(40), 7, shuffle=True, generator=gs.Generator().manual_seed(1))
    again = DataLoader(range(40), 7, shuffle=True, generator=gs.Generator().manual_seed(1))
    assert numbers(own) == numbers(again)


# --- with workers -----------------------------------------------------------------------------------------------------


def forked(dataset: Any, batch_size: Any = 2, **options: Any) -> DataLoader:
    return DataLoader(dataset, batch_size, **{"num_workers": 2, "multiprocessing_context": "fork", **options})


@fork
def test_workers_keep_the_order_and_leave_nothing() -> None:
    gs.manual_seed(0)
    here = numbers(DataLoader(Squares(), 2, shuffle=True))
    gs.manual_seed(0)
    batches: Any = iter(forked(Squares(), shuffle=True))
    processes = [worker.process for worker in batches._workers]
    assert numbers(batches) == here
    assert not any(process.is_alive() for process in processes)


def test_spawned_workers() -> None:
    assert numbers(DataLoader(range(5), 2, num_workers=1, multiprocessing_context="spawn")) == [[0, 1], [2, 3], [4]]


@fork
@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_large_batches_come_whole(prefetch: int) -> None:
    rows = gs.rand(24, 50_000)
    got = gs.cat([batch for (batch,) in forked(gs.utils.data.TensorDataset(rows), prefetch_factor=prefetch)])
    assert gs.equal(got, rows)


@fork
@pytest.mark.torch
@pytest.mark.parametrize("options", [{"batch_size": 2}, {"batch_size": 2, "drop_last": True}, {"batch_size": None}])
def test_workers_on_an_iterable(torch: Any, options: dict[str, Any]) -> None:
    theirs = type("Counting", (torch.utils.data.IterableDataset,), {"__iter__": lambda self: iter(range(5))})()
    expected = numbers(torch.utils.data.DataLoader(theirs, num_workers=2, multiprocessing_context="fork", **options))
    assert numbers(forked(Counting(), **options)) == expected


@fork
def test_workers_that_share_an_iterable() -> None:
    assert sorted(chain.from_iterable(numbers(forked(Shared())))) == list(range(10))


@fork
def test_each_worker_draws_numbers_of_its_own() -> None:
    def rows() -> list[Any]:
        gs.manual_seed(11)
        return list(forked(Draws(), None))

    found = rows()
    assert found == rows()
    assert [row[0] for row in found] == [0, 1, 0, 1]
    assert found[1][1] == found[0][1] + 1
    for kind in (2, 3, 4):
        assert len({row[kind] for row in found}) == 4
    assert get_worker_info() is None


@fork
def test_workers_are_initialised() -> None:
    def init(number: int) -> None:
        info: Any = get_worker_info()
        info.dataset.at_five = (lambda: (_ for _ in ()).throw(OSError(number))) if number == 0 else None

    batches = iter(forked(Squares(), worker_init_fn=init))
    assert numbers([next(batches), next(batches)]) == [[0, 1], [4, 9]]
    with pytest.raises(OSError, match="OSError: 0"):
        next(batches)


class TwoArgumentsError(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(one, two)


def _key_error() -> None:
    raise KeyError("no\nfive")


def _two_arguments() -> None:
    raise TwoArgumentsError(1, 2)


def _local_error() -> None:
    class LocalError(Exception):
        pass

    raise LocalError("only here")


@fork
@pytest.mark.parametrize(
    ("raising", "kind", "last"),
    [
        (_key_error, KeyError, "KeyError: 'no\\nfive'"),
        (_two_arguments, RuntimeError, "TwoArgumentsError: (1, 2)"),
        (_local_error, RuntimeError, "LocalError: only here"),
    ],
)
def test_an_error_of_a_worker_is_raised_with_its_traceback(raising: Any, kind: type[Exception], last: str) -> None:
    with pytest.raises(kind) as caught:
        list(forked(Squares(raising), num_workers=1))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("Caught ")
    assert lines[0].endswith("in DataLoader worker process 0.")
    assert any(f"in {raising.__name__}" in line for line in lines)
    assert lines[-1].endswith(last)


@fork
def test_an_error_of_the_init_function_is_raised() -> None:
    def init(number: int) -> None:
        raise ValueError("not ready")

    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 0"):
        next(iter(forked(Squares(), worker_init_fn=init)))


@fork
def test_a_batch_that_cannot_be_pickled_is_an_error() -> None:
    kinds = AttributeError, TypeError, RuntimeError, pickle.PicklingError  # from Python 3.14 on
    with pytest.raises(kinds, match=r"Caught .*Error in DataLoader worker process"):
        list(forked(Squares(), collate_fn=lambda batch: lambda: batch))


@fork
def test_a_worker_that_dies_is_missed() -> None:
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly\n.*exit code 7"):
        list(forked(Squares(lambda: os._exit(7))))


@fork
def test_a_worker_that_takes_too_long() -> None:
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"^DataLoader timed out after 0\.3 seconds"):
        list(forked(Squares(lambda: time.sleep(60)), timeout=0.3))
    assert time.monotonic() - start < 50


@fork
def test_workers_end_when_the_iterator_is_dropped() -> None:
    gc.disable()
    try:
        batches: Any = iter(forked(Squares()))
        next(batches)
        processes = [worker.process for worker in batches._workers]
        del batches
        assert not any(process.is_alive() for process in processes)
    finally:
        gc.enable()


@fork
def test_persistent_workers_serve_every_pass_and_end_with_the_loader() -> None:
    def who(batch: Any) -> Any:
        return os.getpid(), batch

    gc.disable()
    try:
        loader: Any = forked(Squares(), persistent_workers=True, collate_fn=who)
        first, second = list(loader), list(loader)
        assert first == second
        for _ in loader:
            break  # what is left of this pass is not seen in the next one
        assert list(loader) == first
        processes = [worker.process for worker in loader._workers._workers]
        assert {process.pid for process in processes} == {pid for pid, _ in first}
        del loader, _
        assert not any(process.is_alive() for process in processes)
    finally:
        gc.enable()


@fork
def test_workers_end_beside_those_of_another_loader() -> None:
    train: Any = iter(forked(Squares()))
    test: Any = iter(forked(Squares()))  # these were forked while the pipes of the others were open
    processes = [worker.process for worker in train._workers]
    train.shut_down(grace=60)
    assert [process.exitcode for process in processes] == [0, 0]  # those that are waited for in vain are terminated
    assert numbers(test) == numbers(DataLoader(Squares(), 2))


class Slow(Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        time.sleep(0.4 * (index == 0))
        return index


@fork
def test_batches_as_they_are_ready() -> None:
    assert numbers(forked(Slow(), 1, in_order=False))[0] == [1]
    assert numbers(forked(Slow(), 1)) == [[0], [1], [2], [3]]
