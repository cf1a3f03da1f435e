import os

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images.compare import Change, file_changes, package_changes, record_changes
from pytest_otval.images.lower import Lower
from pytest_otval.images.model import ImageConfig
from pytest_otval.images.record import image_path
from selftests.images.store_of_images import add_image, packed


@pytest.fixture
def image(tmp_path):
    """Make an image of files: ``image(number, {path: content or (content, mode)}, below=())``."""

    def make(number, files, **facts):
        root = tmp_path / f"root-{number}"
        root.mkdir()
        for path, content in files.items():
            text, mode = content if isinstance(content, tuple) else (content, 0o644)
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                target.mkdir(exist_ok=True)
            elif text.startswith("-> "):
                target.symlink_to(text[3:])
                continue
            else:
                target.write_text(text)
            target.chmod(mode if text is not None else 0o755)
        return add_image(tmp_path / "store", number, packed(root), **facts)

    return make


def changes(tmp_path, before, after):
    return list(file_changes(tmp_path / "store", before, after))


def test_files(image, tmp_path):
    before = image(1, {"same": "x", "gone/a": "1", "size": "1", "content": "12", "mode": "1", "link": "-> a"})
    after = image(2, {"same": "x", "new": "1", "size": "22", "content": "21", "mode": ("1", 0o755), "link": "-> b"})
    assert changes(tmp_path, before, after) == [
        Change("changed", "/content", "content"),
        Change("removed", "/gone"),
        Change("removed", "/gone/a"),
        Change("changed", "/link", "target a -> b"),
        Change("changed", "/mode", "mode 644 -> 755"),
        Change("added", "/new"),
        Change("changed", "/size", "size 1 -> 2"),
    ]
    assert changes(tmp_path, before, before) == []


def test_another_kind_is_one_gone_and_one_new(image, tmp_path):
    before, after = image(1, {"a/b": "1"}), image(2, {"a": "1"})
    assert changes(tmp_path, before, after) == [
        Change("removed", "/a"),
        Change("removed", "/a/b"),
        Change("added", "/a"),
    ]


def test_times_are_no_difference(image, tmp_path):
    before = image(1, {"a": "1"})
    os.utime(tmp_path / "root-1" / "a", (1, 1))
    after = add_image(tmp_path / "store", 2, packed(tmp_path / "root-1"))
    assert before.content != after.content
    assert changes(tmp_path, before, after) == []


def test_layers_are_seen_as_one_tree(image, tmp_path):
    base = image(1, {"a": "1", "folder/b": "1", "folder/c": "1"})
    layered = image(2, {"folder/b": "22", "folder/new": "1"}, below=(base.key,))
    flat = image(3, {"a": "1", "folder/b": "22", "folder/c": "1", "folder/new": "1"})
    assert changes(tmp_path, layered, flat) == []
    assert changes(tmp_path, base, layered) == [
        Change("changed", "/folder/b", "size 1 -> 2"),
        Change("added", "/folder/new"),
    ]


def test_what_both_have_from_one_file_is_not_read(image, tmp_path, monkeypatch):
    base = image(1, {"deep/a": "1", "b": "1"})
    first, second = (image(number, {"c": str(number)}, below=(base.key,)) for number in (2, 3))
    listed = []
    names = Lower.names
    monkeypatch.setattr(Lower, "names", lambda self, folder: listed.append(folder) or names(self, folder))
    assert changes(tmp_path, first, second) == [Change("changed", "/c", "content")]
    assert len(listed) == 2, "the root of each, and not the folder that both have"


@pytest.mark.parametrize("spoil", [lambda path: path.unlink(), lambda path: path.write_bytes(b"x" * 200)])
def test_damaged_image(image, tmp_path, spoil):
    before, after = image(1, {"a": "1"}), image(2, {"a": "2"})
    spoil(image_path(tmp_path / "store", after.key))
    with pytest.raises(Conclusion, match="cannot be compared"):
        changes(tmp_path, before, after)


def test_records(tmp_path):
    before = add_image(tmp_path, 1, config=ImageConfig(env={"A": "1", "B": "1"}, workdir="/a", cmd=("a",)))
    after = add_image(tmp_path, 2, base="other@1", config=ImageConfig(env={"A": "2", "C": "1"}, user="app", cmd=("b",)))
    assert list(record_changes(before, after)) == [
        Change("changed", "base", "bootstrap:x@1 -> other@1"),
        Change("changed", "env/A", "1 -> 2"),
        Change("removed", "env/B", "1"),
        Change("added", "env/C", "1"),
        Change("changed", "workdir", "/a -> /"),
        Change("added", "user", "app"),
        Change("changed", "cmd", "['a'] -> ['b']"),
    ]
    assert list(record_changes(before, before)) == []


def test_packages(tmp_path):
    before = add_image(tmp_path, 1, packages={"dpkg": {"bash": "5.1", "gone": "1"}})
    after = add_image(tmp_path, 2, packages={"dpkg": {"bash": "5.2"}, "pip": {"new": "1"}})
    assert list(package_changes(before, after)) == [
        Change("changed", "dpkg/bash", "5.1 -> 5.2"),
        Change("removed", "dpkg/gone", "1"),
        Change("added", "pip/new", "1"),
    ]
