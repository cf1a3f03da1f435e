import os

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.sandbox.toolbox import ensure_toolbox


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A PATH with a busybox and a mksquashfs that are scripts of ours."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(name, text):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)

    make("busybox", "#!static busybox")
    make(
        "mksquashfs",
        '#!/bin/sh\n/usr/bin/find "$1" | /usr/bin/sort | /usr/bin/sed "s#$1##" > "$2"\necho x >> "$0.calls"\n',
    )
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_toolbox_is_packed_once(tmp_path, programs):
    path = ensure_toolbox(tmp_path / "images")
    assert ensure_toolbox(tmp_path / "images") == path
    assert (programs / "mksquashfs.calls").read_text() == "x\n"
    assert os.listdir(tmp_path / "images") == [path.name]
    found = set(path.read_text().split())
    assert {"/busybox", "/sh", "/proc", "/dev", "/var/tmp", "/own-layers", "/lib/ot-runtime.sh"} <= found


def test_another_busybox_makes_another_toolbox(tmp_path, programs):
    first = ensure_toolbox(tmp_path)
    (programs / "busybox").write_text("another")
    assert ensure_toolbox(tmp_path) != first


@pytest.mark.parametrize("name", ["busybox", "mksquashfs"])
def test_missing_program(tmp_path, programs, name):
    (programs / name).unlink()
    with pytest.raises(Conclusion, match=f"{name} is not on PATH: install") as caught:
        ensure_toolbox(tmp_path)
    assert caught.value.reason == "missing-tool"


def test_dynamic_busybox_is_refused(tmp_path, programs):
    (programs / "busybox").write_bytes(b"\x7fELF" + b"\0" * 100 + b"/lib64/ld-linux-x86-64.so.2\0")
    with pytest.raises(Conclusion, match="not static"):
        ensure_toolbox(tmp_path)
