"""What a phase changed, told from a list of the writable layer."""

import os
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.sandbox.base import UPPER
from pytest_otval.trial import changed
from pytest_otval.trial.changed import Change, Changes, Moment, parse
from selftests.fakes import FakeSandbox


def listing(*entries):
    return b"".join(f"{entry}\0".encode(errors="surrogateescape") for entry in entries)


def paths(changes):
    return [(change.kind, change.path) for change in changes.found]


def test_kinds():
    changes = parse(listing("f app/f", "l app/l", "p app/p", "s app/s", "c app/gone", "d new"))
    assert paths(changes) == [
        ("file", "/app/f"),
        ("removed", "/app/gone"),
        ("link", "/app/l"),
        ("other", "/app/p"),
        ("other", "/app/s"),
        ("folder", "/new"),
    ]


def test_folders_above_a_change_say_nothing():
    changes = parse(listing("d app", "d app/deep", "f app/deep/f", "d app/empty", "d app2"))
    assert paths(changes) == [("file", "/app/deep/f"), ("folder", "/app/empty"), ("folder", "/app2")]


def test_marks_of_fuse_overlayfs():
    changes = parse(listing("f app/.wh.gone", "f app/.wh..wh..opq", "f .wh.top", "f app/.wh..opq"))
    assert paths(changes) == [("removed", "/app/gone"), ("removed", "/top")]


@pytest.mark.parametrize(
    "path",
    ["logs/agent/x", "logs", "tests/a", "solution", ".otval", ".otval-inbox/x", ".singularity.d/env", "proc", "dev/x",
     "etc/resolv.conf", "setup_files/setup.sh"],
)  # fmt: skip
def test_mounts_and_our_own_files_are_left_out(path):
    assert parse(listing(f"f {path}")) == Changes()


@pytest.mark.parametrize("path", ["logs2", "app/tests/a", "app/logs", "etc/resolv.conf.bak", "testsuite"])
def test_what_looks_like_them_is_not(path):
    assert paths(parse(listing(f"f {path}"))) == [("file", f"/{path}")]


def test_a_list_that_was_cut():
    changes = parse(listing("f a") + b"f half-of-a-na", whole=False)
    assert (paths(changes), changes.whole) == ([("file", "/a")], False)


def test_what_could_not_be_read():
    changes = parse(listing("f a", "! "))
    assert (paths(changes), changes.whole) == ([("file", "/a")], False)


def test_a_path_that_is_too_long():
    changes = parse(listing("f a", "f " + "x/" * 5000 + "y"))
    assert (paths(changes), changes.whole) == ([("file", "/a")], False)


def test_a_folder_that_was_removed_and_made_again():
    changes = parse(listing("f .wh.app", "d app", "f app/new", "d app.d"))
    assert paths(changes) == [("removed", "/app"), ("file", "/app/new"), ("folder", "/app.d")]


def test_marks_below_names_with_line_ends():
    assert parse(listing("f a\nb/.wh..wh..opq", "f a\nb/.wh..opq")) == Changes()


def test_too_many_changes(monkeypatch):
    monkeypatch.setattr(changed, "MAX_CHANGES", 3)
    assert parse(listing("f a", "f b", "f c")) == Changes(tuple(Change("file", f"/{name}") for name in "abc"))
    assert parse(listing("f a", "f b", "f c", "f d")) == Changes(
        tuple(Change("file", f"/{name}") for name in "abc"), whole=False
    )


def test_many_levels_are_no_work():
    deep = [f"d {'a/' * depth}b" for depth in range(1500)]
    assert len(parse(listing(*deep)).found) == 1500


@given(st.binary())
def test_any_bytes(data):
    for change in parse(data).found:
        assert change.path.startswith("/")
        assert "\0" not in change.path


NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=5)
PATHS = st.lists(NAMES.filter(lambda name: name not in (".", "..")), min_size=1, max_size=4).map("/".join)


@given(st.sets(PATHS))
def test_each_file_is_told(files):
    told = {change.path for change in parse(listing(*(f"f above/{path}" for path in sorted(files)))).found}
    for path in files:
        name = path.rpartition("/")[2]
        assert name.startswith(".wh.") or f"/above/{path}" in told


@pytest.fixture
def layer(tmp_path):
    overlay = tmp_path / "overlay"
    (overlay / UPPER / "app").mkdir(parents=True)
    for name in ("old", "touched", "removed"):
        (overlay / UPPER / "app" / name).write_text("x")
    return overlay


def test_since_a_moment(layer, tmp_path):
    moment = Moment(tmp_path / "began")
    app = layer / UPPER / "app"
    (app / "touched").write_text("y")
    os.utime(app / "touched", (1, 1))
    (app / "new\nline").write_text("x")
    (app / "link").symlink_to("/etc/passwd")
    os.mkfifo(app / "fifo")
    changes = moment.changes(FakeSandbox(), layer)
    assert {change.path for change in changes.found} == {"/app/touched", "/app/new\nline", "/app/link", "/app/fifo"}
    assert changes.whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["began", "overlay"]


def test_what_was_removed_again_shows_in_its_folder(layer, tmp_path):
    moment = Moment(tmp_path / "began")
    (layer / UPPER / "app" / "removed").unlink()
    assert moment.changes(FakeSandbox(), layer).found == (Change("folder", "/app"),)


def test_a_list_that_cannot_be_written(layer, tmp_path):
    class Full(FakeSandbox):
        def touched(self, folder, since, target, most):
            """Write nothing, as on a full disk."""

    assert Moment(tmp_path / "began").changes(Full(), layer) == Changes(whole=False)


def test_nothing(layer, tmp_path):
    assert Moment(tmp_path / "began").changes(FakeSandbox(), layer) == Changes()
    shutil.rmtree(layer / UPPER)
    assert Moment(tmp_path / "again").changes(FakeSandbox(), layer) == Changes()
