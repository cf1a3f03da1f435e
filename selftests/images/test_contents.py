"""What is new in an image, and images that are made to harm."""

import pytest

from pytest_otval.images import contents as module
from pytest_otval.images.contents import Contents, index_of
from selftests.leaks.conftest import pack


def test_index(tmp_path):
    links = {"app/loop": ("link", "loop"), "app/up": ("link", "../app"), "app/out": ("link", "/etc")}
    files = {"app/x": "x", "usr/lib/y": "y", "usr/local/lib/z": "zz", "logs/l": "l", **links}
    more = {"app/__pycache__/a.pyc": "a", "app/.git/HEAD": "h", "app/.git/objects/ab/c": "c", "b/HEAD": "h"}
    index = index_of(pack(tmp_path / "a.sqfs", {**files, **more}))
    assert index.stamps["app/x"] == (1, 5)
    assert set(index.stamps) == {*files, *more} - {*links, "usr/lib/y"}
    assert index.by_size[2] == ["usr/local/lib/z"]
    assert (index.repositories, index.logs) == (("app/.git",), ("logs/l",))
    assert index.bytecode == ("app/__pycache__/a.pyc",)


def test_an_image_may_hold_larger_files_than_a_packed_task(tmp_path, monkeypatch):
    monkeypatch.setattr("pytest_otval.task.packed.image.MAX_BYTES", 10)
    index = index_of(pack(tmp_path / "a.sqfs", {"weights": "x" * 11}))
    assert (index.fault, set(index.stamps)) == ("", {"weights"})


def test_repository_at_the_root(tmp_path):
    index = index_of(pack(tmp_path / "a.sqfs", {"HEAD": "h", "objects/ab/c": "c"}))
    assert index.repositories == ("",)


def test_an_index_is_made_once(tmp_path):
    file = pack(tmp_path / "a.sqfs", {"x": "x"})
    assert index_of(file) is index_of(file)


def test_links_are_not_followed(tmp_path):
    file = pack(tmp_path / "a.sqfs", {"app/x": "x", "loop": ("link", "loop"), "up": ("link", "app")})
    with Contents((file,)) as contents:
        assert contents.file("app/x") is not None
        assert (contents.file("loop"), contents.file("loop/x"), contents.file("up/x")) == (None, None, None)
        assert (contents.names("up"), contents.names("app/x")) == ([], [])
        assert (contents.exists("up"), contents.exists("up/x")) == (True, False)


@pytest.mark.parametrize("keep", [0, 50, 96, 200, 0.5])
def test_truncated_image(tmp_path, keep):
    file = pack(tmp_path / "a.sqfs", {f"f{number}": str(number) * 5000 for number in range(200)})
    raw = file.read_bytes()
    file.write_bytes(raw[: keep if isinstance(keep, int) else int(len(raw) * keep)])
    with Contents((file,)) as contents:
        assert contents.fault.startswith("its packed file cannot be read: ")


def test_missing_image(tmp_path):
    with Contents((tmp_path / "none.sqfs",)) as contents:
        assert contents.fault == "its packed file cannot be read: No such file or directory"


def test_image_with_more_files_than_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_ENTRIES", 100)
    file = pack(tmp_path / "a.sqfs", {f"f{number}": "" for number in range(200)})
    with Contents((file,)) as contents:
        assert contents.fault == "it has more than 100 files and folders in one layer"
        assert next(contents.numbered())[1].stamps == {}
