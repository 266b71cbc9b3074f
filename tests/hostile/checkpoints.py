"""Checkpoints that have been damaged, or made to harm: nothing is run, and the error is one of load()'s."""

from __future__ import annotations

import io
import pickle
import random
import zipfile

import gradscope as gs

_CALLS = (
    b"cos\nsystem\nX\x02\x00\x00\x00:;\x85R", b"cbuiltins\nexec\nX\x04\x00\x00\x00pass\x85R",
    b"cbuiltins\neval\nX\x01\x00\x00\x001\x85R", b"csubprocess\nPopen\nX\x04\x00\x00\x00true\x85R",
    b"cbuiltins\nbytearray\n\x8a\x06\x00\x00\x00\x00\x00\x01\x85R",
    b"ccollections\nOrderedDict\n)R}(X\x01\x00\x00\x00a1ub",
    b"ctorch\nFloatStorage\n)R", b"ctorch.storage\nUntypedStorage\n)\x81", b"\x96\x00\x00\x00\x00\x00\x01\x00\x00",
    b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f", b"c__main__\nCase\n)R", b"(iposix\nsystem\n", b"cgradscope\nload\n)R",
    b")" + b"2\x86" * 60 + b"(" + b")" + b"2\x86" * 60 + b"N}s",
)  # fmt: skip


def make_sound() -> list[dict[str, bytes]]:
    """Return the records of some checkpoints, by name."""
    gs.manual_seed(0)
    model = gs.nn.Sequential(gs.nn.Linear(3, 4), gs.nn.ReLU(), gs.nn.Linear(4, 2))
    optimizer = gs.optim.Adam(model.parameters())
    model(gs.ones(1, 3)).sum().backward()
    optimizer.step()
    shared = gs.arange(6.0)
    found = []
    for value in (model.state_dict(), optimizer.state_dict(), {"a": shared, "b": shared[2:], "c": [1, "x", {2, 3}]}):
        stream = io.BytesIO()
        gs.save(value, stream)
        with zipfile.ZipFile(stream) as archive:
            found.append({name: archive.read(name) for name in archive.namelist()})
    return found


def packed(records: dict[str, bytes], chance: random.Random) -> bytearray:
    """Return an archive of records, compressed or not."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, content in records.items():
            archive.writestr(name, content)
    return bytearray(stream.getvalue())


def mutate(sound: list[dict[str, bytes]], number: int) -> bytes:
    """Return the checkpoint of a number."""
    chance = random.Random(number)
    records = dict(chance.choice(sound))
    pickled = next(name for name in records if name.endswith("data.pkl"))
    kind = number % 4
    if kind == 0:  # the pickle, with a call in it
        content = records[pickled]
        at = chance.randrange(2, len(content))
        records[pickled] = content[:at] + chance.choice(_CALLS) + content[at if chance.random() < 0.7 else -1 :]
    elif kind == 1:  # the pickle, with other bytes
        content = bytearray(records[pickled])
        for _ in range(chance.choice((1, 2, 10))):
            content[chance.randrange(len(content))] = chance.randrange(256)
        records[pickled] = bytes(content)
    elif kind == 2:  # a record that unpacks to far more
        key = chance.choice([name for name in records if "/data/" in name])
        records[key] = bytes(chance.choice((0, 1, 5, 17, 100_000_000)))
    data = packed(records, chance)
    if kind == 3:  # the archive, with other bytes
        for _ in range(chance.choice((1, 5, 40))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
    return bytes(data)


class Case:
    """The case of a number: a mutated checkpoint that is loaded."""

    def __init__(self) -> None:
        self._sound = make_sound()

    def __call__(self, number: int) -> None:
        data = mutate(self._sound, number)
        said = "nothing"
        try:
            gs.load(io.BytesIO(data))
        except RecursionError:
            said = ""
        except (RuntimeError, pickle.UnpicklingError, EOFError) as error:
            said = str(error).strip()
        assert said, "neither a checkpoint nor an error that says why"
