"""Files in memory, and what the tests of saving and loading put into them."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import gradscope as gs

DTYPES = [
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "bool",
]


def written(lib: Any, obj: Any) -> io.BytesIO:
    file = io.BytesIO()
    lib.save(obj, file)
    file.seek(0)
    return file


def through(obj: Any, **options: Any) -> Any:
    return gs.load(written(gs, obj), **options)


def network(lib: Any) -> Any:
    return lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.nn.Linear(4, 2))


def one_step(lib: Any, model: Any) -> Any:
    optimizer = lib.optim.Adam(model.parameters(), lr=0.1)
    model(lib.linspace(0, 1, 12).reshape(4, 3)).sum().backward()
    optimizer.step()
    return optimizer


def archive(pickled: bytes, **records: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("archive/data.pkl", pickled)
        for name, content in records.items():
            made.writestr(f"archive/{name.replace('_', '/')}", content)
    file.seek(0)
    return file


MEMORY = b"(Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI4\ntQ"


def rebuilt(offset: int, size: int, stride: int) -> bytes:
    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n("
        + MEMORY
        + f"I{offset}\n(I{size}\nt(I{stride}\ntI00\nccollections\nOrderedDict\n)RtR.".encode()
    )
