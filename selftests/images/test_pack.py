"""Packing a stream."""

import os
import subprocess
import time
from contextlib import suppress

import psutil
import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images import pack
from pytest_otval.images.pack import PackError, packing


def listing(path):
    argv = ["unsquashfs", "-lln", "-d", "", path]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def archive(tmp_path):
    (tmp_path / "in" / "etc").mkdir(parents=True)
    (tmp_path / "in" / "etc" / "file").write_text("x")
    argv = ["tar", "-C", tmp_path / "in", "--owner=7", "--group=8", "-c", "etc"]
    return subprocess.run(argv, capture_output=True, check=True).stdout


@pytest.mark.parametrize(("all_root", "owner"), [(False, "7/8"), (True, "0/0")])
def test_owners_and_mount_points(tmp_path, all_root, owner):
    data = archive(tmp_path)
    with packing(tmp_path / "out.sqfs", all_root) as stream:
        os.write(stream, data)
    lines = {line.split()[-1]: line for line in listing(tmp_path / "out.sqfs").splitlines() if " /" in line}
    assert {"/proc", "/sys", "/dev", "/etc/file"} <= set(lines)
    assert owner in lines["/etc/file"]
    assert lines["/etc"].startswith("drwxr-xr-x 0/0")
    assert listing(tmp_path / "out.sqfs").startswith("drwxr-xr-x 0/0")


def test_padding_may_come_after_mksquashfs_has_ended(tmp_path):
    data = archive(tmp_path)
    end = len(data.rstrip(b"\0")) // 512 * 512 + 3 * 512
    assert end < len(data)
    others = set(psutil.Process().children())
    with packing(tmp_path / "out.sqfs", False) as stream:
        os.write(stream, data[:end])
        while not ended(set(psutil.Process().children()) - others):
            time.sleep(0.01)
        os.write(stream, data[end:])
    assert "/etc/file" in listing(tmp_path / "out.sqfs")


def ended(processes):
    with suppress(psutil.NoSuchProcess):
        return all(one.status() == psutil.STATUS_ZOMBIE for one in processes)
    return False


def test_nonsense_is_no_image(tmp_path):
    with pytest.raises(PackError), packing(tmp_path / "out.sqfs", False) as stream:
        os.write(stream, b"nonsense" * 1000)


def test_error_of_mksquashfs_beats_that_of_its_writer(tmp_path):
    with pytest.raises(PackError), packing(tmp_path / "no" / "out.sqfs", False) as stream:
        for _ in range(1000):
            os.write(stream, b"\0" * 65536)


def test_error_of_the_writer_is_told(tmp_path):
    with pytest.raises(RuntimeError, match="mine"), packing(tmp_path / "out.sqfs", False):
        raise RuntimeError("mine")


def test_missing_program(tmp_path, monkeypatch):
    monkeypatch.setattr(pack.shutil, "which", lambda name: None)
    with pytest.raises(Conclusion, match="install squashfs-tools"), packing(tmp_path / "out.sqfs", False):
        pass
