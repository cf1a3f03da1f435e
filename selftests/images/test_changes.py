"""What a build changed, told from a list of the merged view."""

import io
import tarfile

import pytest

from pytest_otval.images.changes import Changes, UnclearError, changes, whiteout
from pytest_otval.images.lower import Lower
from pytest_otval.images.pack import packing
from pytest_otval.task.packed.unpack import Kind

NOW = 1000


@pytest.fixture
def lower(tmp_path):
    """Open squashfs files made of ``{path: (kind, mtime)}``, lowest first."""
    made = []

    def make(*layers):
        files = []
        for number, entries in enumerate(layers):
            files.append(tmp_path / f"{number}.sqfs")
            with packing(files[-1], all_root=True, folders=()) as stream, io.FileIO(stream, "w", closefd=False) as out:
                out.write(archive(entries))
        made.append(Lower(files))
        return made[-1]

    yield make
    for one in made:
        one.__exit__(None, None, None)


def archive(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, (kind, mtime) in entries.items():
            header = tarfile.TarInfo(path)
            header.type, header.mtime, header.mode = kind, mtime, 0o755
            tar.addfile(header)
    return out.getvalue()


FOLDER, FILE, LINK, DEVICE = tarfile.DIRTYPE, tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE
BASE = {"etc": (FOLDER, 5), "etc/a": (FILE, 5), "etc/b": (FILE, 6), "etc/sub": (FOLDER, 5), "etc/sub/c": (FILE, 5)}
SAME = ["41ed 5 ./etc", "81ed 5 ./etc/a", "81ed 6 ./etc/b", "41ed 5 ./etc/sub", "81ed 5 ./etc/sub/c"]


@pytest.mark.parametrize(
    ("listing", "changed", "removed"),
    [
        (SAME, (), ()),
        ([*SAME, "81a4 999 ./etc/new", "41ed 999 ./more"], ("etc/new", "more"), ()),
        (["41ed 999 ./etc", "81ed 998 ./etc/a", *SAME[2:]], ("etc", "etc/a"), ()),
        (["41ed 999 ./etc", *SAME[2:]], ("etc",), ("etc/a",)),
        (SAME[:3], (), ("etc/sub",)),
        ([], (), ("etc",)),
        # A file in the place of a folder hides what the folder held.
        ([*SAME[:3], "81a4 999 ./etc/sub"], ("etc/sub",), ()),
        # A folder in the place of a file.
        ([SAME[0], "41ed 999 ./etc/a", "81a4 999 ./etc/a/x", *SAME[2:]], ("etc/a", "etc/a/x"), ()),
        # Sockets are in no image, and the runtime's files are not the task's.
        ([*SAME, "c1ed 999 ./etc/socket", "81a4 999 ./etc/resolv.conf", "81a4 999 ./.otval-build/x"], (), ()),
    ],
)
def test_changes(lower, listing, changed, removed):
    found = changes(listing, lower(BASE), NOW)
    assert (found.changed, found.removed) == (changed, removed)


def test_file_touched_in_the_second_in_which_it_was_made_counts_as_changed(lower):
    below = lower({"etc": (FOLDER, 5), "etc/a": (FILE, NOW)})
    assert changes(["41ed 5 ./etc", f"81ed {NOW} ./etc/a"], below, NOW).changed == ("etc/a",)
    assert changes(["41ed 5 ./etc", f"81ed {NOW} ./etc/a"], below, NOW + 1).changed == ()


def test_what_a_layer_below_removed_is_neither_there_nor_removed_again(lower):
    below = lower(BASE, {"etc": (FOLDER, 7), "etc/a": (DEVICE, 0)})
    assert below.names(below.child(below.root(), "etc")) == ["b", "sub"]
    assert below.child(below.child(below.root(), "etc"), "a") is None
    assert changes(["41ed 7 ./etc", *SAME[2:]], below, NOW) == Changes((), ())
    again = changes(["41ed 7 ./etc", "81a4 999 ./etc/a", *SAME[2:]], below, NOW)
    assert (again.changed, again.removed) == (("etc/a",), ())


def test_folders_of_several_layers_are_one(lower):
    below = lower(BASE, {"etc": (FOLDER, 7), "etc/z": (FILE, 7)})
    etc = below.child(below.root(), "etc")
    assert (below.names(etc), etc.inode.mtime) == (["a", "b", "sub", "z"], 7)


@pytest.mark.parametrize("line", ["81ed 5 ./etc/a\nb", "x", "", "81ed 5 etc"])
def test_list_that_cannot_be_read(lower, line):
    lines = line.split("\n") if "\n" in line else [line]
    with pytest.raises(UnclearError):
        changes([*SAME, *lines], lower(BASE), NOW)


def test_folders_may_be_nested_deeper_than_python_recurses(lower):
    deep = ["/".join(["d"] * depth) for depth in range(1, 1500)]
    below = lower(dict.fromkeys(deep, (FOLDER, 5)) | {f"{deep[-1]}/f": (FILE, 5)})
    assert changes([f"41ed 5 ./{path}" for path in deep], below, NOW).removed == (f"{deep[-1]}/f",)


def test_whiteout_is_a_device_with_no_numbers():
    header = tarfile.TarInfo.frombuf(whiteout("etc/" + "n" * 90), "utf-8", "surrogateescape")
    assert (header.type, header.devmajor, header.devminor) == (tarfile.CHRTYPE, 0, 0)


def test_whiteout_of_a_long_or_odd_name_is_a_whiteout(tmp_path, lower):
    name = "\udcff" + "n" * 200
    with packing(tmp_path / "w.sqfs", all_root=True, folders=("d",)) as stream:
        io.FileIO(stream, "w", closefd=False).write(whiteout(f"d/{name}") + bytes(1024))
    with Lower([tmp_path / "w.sqfs"]) as image:
        folder = image.child(image.root(), "d")
        assert folder is not None
        assert folder.inode.kind is Kind.FOLDER
        assert image.names(folder) == []
        assert list(image._listing(0, folder.inode)) == [name]
