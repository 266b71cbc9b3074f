from __future__ import annotations

import errno
import os
import stat

import pytest

from gradscope.inspect.wire.addresses import (
    AddressError,
    listening_programs,
    listening_socket,
    own_address,
    parse_address,
    reach,
)  # fmt: skip


@pytest.fixture(autouse=True)
def runtime_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def test_the_socket_is_the_users_alone(runtime_directory):
    listener, address = listening_socket(own_address())
    with listener:
        assert stat.S_IMODE(os.stat(address.path).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(runtime_directory / "gradscope").st_mode) == 0o700
        assert listening_programs() == [os.getpid()]
        with reach(parse_address(str(os.getpid()))):
            pass
        with pytest.raises(AddressError, match="another program listens"):
            listening_socket(address)
    assert listening_programs() == []
    assert not os.path.exists(address.path)
    with pytest.raises(AddressError, match="no program listens at"):
        reach(address)


def test_a_directory_that_others_can_read_is_not_used(runtime_directory):
    (runtime_directory / "gradscope").mkdir(mode=0o755)
    with pytest.raises(AddressError, match="not a directory of yours alone"):
        own_address()


def test_without_a_runtime_directory_there_is_one_among_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "missing"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert own_address().path == str(tmp_path / f"gradscope-{os.getuid()}" / f"{os.getpid()}.sock")


def read_only(path, *args, **options):
    raise OSError(errno.EROFS, "Read-only file system", str(path))


def no_directory():
    raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")


@pytest.mark.parametrize(
    ("place", "fails", "said"),
    [
        ("pathlib.Path.mkdir", read_only, r"/gradscope: Read-only file system\n"),
        ("tempfile.gettempdir", no_directory, r"temporary files: No usable temporary directory found in \['/tmp'\]\n"),
    ],
)
def test_where_no_directory_can_be_made_it_is_said_in_a_line(tmp_path, monkeypatch, place, fails, said):
    if fails is no_directory:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "missing"))
    monkeypatch.setattr(place, fails)
    with pytest.raises(AddressError, match=f"^there is no directory for sockets: .*{said}Set XDG_RUNTIME_DIR to "):
        own_address()
    assert listening_programs() == []


@pytest.mark.parametrize("text", ["tcp://localhost", "tcp://:70000", "tcp://x:port", ""])
def test_what_is_no_address(text):
    with pytest.raises(AddressError, match="address"):
        parse_address(text)


def test_a_port_is_chosen_on_loopback():
    listener, address = listening_socket(parse_address("tcp://:0"))
    with listener:
        assert str(address).startswith("tcp://127.0.0.1:")
        assert address.port
        reach(address).close()


def test_a_path_that_is_too_long_is_refused_with_the_way_out(runtime_directory):
    address = parse_address(str(runtime_directory / ("d" * 120)))
    with pytest.raises(AddressError, match=r"(?s)^cannot listen at .*too long\nSet XDG_RUNTIME_DIR to a directory"):
        listening_socket(address)
