"""Bundles out of one store and into another; those that lie are refused and leave the store as it was."""

import hashlib
import json
import os
from dataclasses import replace

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.images import bundle as bundle_module
from pytest_otval.images.bundle import MAX_RECORD_BYTES, SUMS, export_bundle, import_bundle
from pytest_otval.images.model import ImageConfig
from pytest_otval.images.record import image_path, read_record, record_path, records, write_record
from selftests.images.store_of_images import add_image, key_of

CONFIG = ImageConfig(env={"PATH": "/bin", "ODD": "a\nb"}, user="app", cmd=("sh", "-c"), healthcheck=("CMD", "true"))


@pytest.fixture
def store(tmp_path):
    store = tmp_path / "store"
    below = add_image(store, 1, b"below", packages={"dpkg": {"bash": "5"}})
    add_image(store, 2, b"above", below=(below.key,), config=CONFIG, log="said at mirror.example.org", seconds=1.5)
    add_image(store, 3, b"other")
    return store


@pytest.fixture
def bundle(store, tmp_path):
    folder = tmp_path / "bundle"
    export_bundle(store, [read_record(store, key_of(2))], folder)
    return folder


@pytest.fixture
def empty(tmp_path):
    (tmp_path / "new").mkdir()
    return tmp_path / "new"


def sum_up(folder, key=None):
    """Write the checksums anew, as somebody would who changed a file."""
    names = sorted(path.name for path in folder.iterdir() if path.name != SUMS)
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (folder / SUMS).write_text("".join(lines))


def change_record(folder, number, **values):
    path = record_path(folder, key_of(number))
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    sum_up(folder)


def assert_refused(empty, folder, says):
    with pytest.raises(OtvalUsageError, match=says) as caught:
        import_bundle(empty, folder)
    assert "\n" not in str(caught.value)
    assert list(empty.iterdir()) == []


def test_bundle_has_the_image_and_all_below_and_no_log(store, bundle):
    assert {path.name for path in bundle.iterdir()} == {
        SUMS,
        *(f"{key_of(number)}.{suffix}" for number in (1, 2) for suffix in ("json", "sqfs")),
    }
    before = (bundle / SUMS).read_text()
    sum_up(bundle)
    assert sorted(before.splitlines()) == sorted((bundle / SUMS).read_text().splitlines())
    assert "mirror.example.org" not in record_path(bundle, key_of(2)).read_text()
    assert bundle.stat().st_mode & 0o777 == 0o755


def test_round_trip(store, bundle, empty):
    assert [(one.record.key, one.new) for one in import_bundle(empty, bundle)] == [(key_of(1), True), (key_of(2), True)]
    assert list(records(empty)) == sorted(
        [read_record(store, key_of(1)), replace(read_record(store, key_of(2)), log="")], key=lambda one: one.key
    )
    assert image_path(empty, key_of(2)).read_bytes() == b"above"
    assert [one.new for one in import_bundle(empty, bundle)] == [False, False]
    assert len(list(empty.iterdir())) == 4


def test_export_takes_no_folder_that_exists(store, tmp_path):
    with pytest.raises(OtvalUsageError, match="name a new folder"):
        export_bundle(store, [read_record(store, key_of(1))], tmp_path)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda path: path.write_bytes(b"BELOW"), "another content"),
        (lambda path: path.write_bytes(b"belo"), "another size"),
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.with_suffix(".json").unlink(), "is not in the store"),
    ],
)
def test_export_of_a_damaged_image_leaves_nothing(store, tmp_path, spoil, says):
    spoil(image_path(store, key_of(1)))
    with pytest.raises(Conclusion, match=says):
        export_bundle(store, [read_record(store, key_of(2))], tmp_path / "out" / "bundle")
    assert not list((tmp_path / "out").iterdir()) if (tmp_path / "out").exists() else True


def test_other_files_are_not_taken(bundle, empty):
    (bundle / "README.md").write_text("x")
    (bundle / "toolbox-1.sqfs").write_text("x")
    import_bundle(empty, bundle)
    assert len(list(empty.iterdir())) == 4


def test_image_that_is_here_with_another_content_stays(bundle, empty):
    own = add_image(empty, 1, b"made here")
    with pytest.raises(OtvalUsageError, match="with another content"):
        import_bundle(empty, bundle)
    assert list(records(empty)) == [own]
    assert image_path(empty, own.key).read_bytes() == b"made here"


def test_image_in_the_making_is_waited_for_by_nobody(bundle, empty):
    with FileLock(empty / f"{key_of(1)}.lock"), pytest.raises(OtvalUsageError, match="is being made now"):
        import_bundle(empty, bundle)


def test_full_disk(bundle, empty, monkeypatch):
    monkeypatch.setattr(bundle_module.shutil, "disk_usage", lambda path: _Usage)
    with pytest.raises(Conclusion, match="host-disk-full"):
        import_bundle(empty, bundle)
    assert list(empty.iterdir()) == []


class _Usage:
    free = 3


def flip(path):
    path.write_bytes(path.read_bytes()[:-1] + b"?")


def as_link(path):
    path.rename(path.with_name("moved"))
    path.symlink_to(path.with_name("moved"))


def as_fifo(path):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "spoil", [flip, as_link, as_fifo, lambda path: path.unlink(), lambda path: path.write_bytes(b"")]
)
@pytest.mark.parametrize("name", [SUMS, f"{key_of(1)}.sqfs", f"{key_of(2)}.json", f"{key_of(2)}.sqfs"])
def test_files_that_are_not_what_they_should_be(bundle, empty, spoil, name):
    spoil(bundle / name)
    assert_refused(empty, bundle, "is no whole bundle")


@pytest.mark.parametrize(
    "line",
    [
        f"{'0' * 64}  ../{key_of(5)}.sqfs",
        f"{'0' * 64}  /etc/passwd",
        f"{'0' * 64}  {key_of(5)[:-1]}.sqfs",
        f"{'0' * 64}  {key_of(5).upper()}.sqfs",
        f"{'0' * 64}  toolbox-1.sqfs",
        f"{'0' * 64}  {key_of(5)}.lock",
        f"{'0' * 64} *{key_of(5)}.sqfs",
        f"{'0' * 63}  {key_of(5)}.sqfs",
        f"{'0' * 64}  {key_of(2)}.sqfs",
        f"{'0' * 64}  {key_of(5)}.sqfs",
        "",
        "\x1b[31m",
    ],
)
def test_lines_that_name_anything_else(bundle, empty, line):
    with (bundle / SUMS).open("a") as file:
        file.write(f"{line}\n")
    assert_refused(empty, bundle, SUMS)


@pytest.mark.parametrize(
    "values",
    [
        {"key": key_of(4)},
        {"key": None},
        {"content": "0" * 64},
        {"content": "x"},
        {"bytes": 4},
        {"bytes": 10**12},
        {"bytes": -1},
        {"bytes": True},
        {"bytes": "5"},
        {"below": [key_of(4)]},
        {"below": ["../x"]},
        {"below": [key_of(2)]},
        {"below": [key_of(1), key_of(1)]},
        {"below": [key_of(number) for number in range(10, 40)]},
        {"below": key_of(1)},
        {"config": {"env": {"A": 1}}},
        {"config": {"cmd": "sh"}},
        {"config": []},
        {"packages": {"dpkg": ["bash"]}},
        {"packages": []},
        {"all_root": "no"},
        {"log": 3},
        {"seconds": "long"},
        {"base": None},
        {"format": 1},
        {"format": None},
    ],
    ids=str,
)
def test_records_that_do_not_hold(bundle, empty, values):
    change_record(bundle, 2, **values)
    assert_refused(empty, bundle, "is no whole bundle")


def test_record_of_another_image(bundle, store, empty):
    write_record(bundle, replace(read_record(store, key_of(3)), key=key_of(2)))
    sum_up(bundle)
    assert_refused(empty, bundle, "two contents")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{}", "[]", "1", '{"format": 2}', '"' + "x" * MAX_RECORD_BYTES + '"', "\0"]
)
def test_json_that_is_no_record(bundle, empty, text):
    record_path(bundle, key_of(2)).write_text(text)
    sum_up(bundle)
    assert_refused(empty, bundle, f"{key_of(2)}.json")


@given(st.binary(max_size=200))
def test_any_bytes_for_checksums(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("bundle")
    (folder / SUMS).write_bytes(data)
    with pytest.raises(OtvalUsageError):
        import_bundle(folder, folder)


def test_folder_without_checksums(tmp_path, empty):
    assert_refused(empty, tmp_path / "none", "there is no SHA256SUMS")
