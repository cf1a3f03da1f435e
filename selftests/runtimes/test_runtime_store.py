import os
from dataclasses import replace

import pytest

from pytest_otval.runtimes.record import ROOT, Reference, read_reference, squashfs_path, write_reference
from pytest_otval.runtimes.store import Runtimes, UnusableError
from selftests.kills import killed_at_each_step
from selftests.runtimes.made import put

OLD, NEW = "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:01+00:00"


@pytest.fixture
def runtimes(tmp_path):
    return Runtimes(tmp_path / "cache")


def test_what_is_whole_is_found(runtimes):
    runtime = put(runtimes)
    assert runtimes.find(Reference.of(runtime)) == runtime
    assert runtimes.file(runtime).stat().st_mode & 0o222 == 0
    assert sorted(path.suffix for path in runtimes.cache.iterdir()) == [".json", ".sqfs"]


def test_contents_of_one_id_stand_side_by_side(runtimes):
    old, new = put(runtimes, text="old", made=OLD), put(runtimes, text="new", made=NEW)
    assert old.checksum != new.checksum
    assert runtimes.find(Reference.of(old)) == old
    assert runtimes.newest(old.id) == new
    runtimes.file(new).unlink()
    assert runtimes.newest(old.id) == old


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"checksum": "0" * 64}, "with checksum"),
        ({"id": "other-000000000000"}, "no complete other"),
        ({"path": "/opt/other"}, "expects it at /opt/other"),
    ],
)
def test_what_the_task_names_otherwise_is_not_used(runtimes, change, said):
    with pytest.raises(UnusableError, match=said):
        runtimes.find(replace(Reference.of(put(runtimes)), **change))


def test_an_empty_cache_says_what_it_does_not_have(runtimes):
    reference = Reference("tools-000000000000", "a" * 64, "/opt/x")
    with pytest.raises(UnusableError, match="no complete tools-000000000000"):
        runtimes.find(reference)
    assert runtimes.newest(reference.id) is None
    assert runtimes.garbage(set(), 1e12) == []


def test_a_file_is_read_again_once_it_was_touched(runtimes):
    runtime = put(runtimes)
    assert runtimes.fault(runtime) == ""
    path = squashfs_path(runtimes.cache, runtime.checksum)
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(0, 0))
    assert "does not match" in runtimes.fault(runtime)
    with pytest.raises(UnusableError, match="does not match"):
        runtimes.find(Reference.of(runtime))


def test_garbage_is_what_nobody_names_and_is_old(runtimes):
    named, other = put(runtimes, "a"), put(runtimes, "b")
    (runtimes.cache / "toolbox-1.sqfs").touch()
    (runtimes.cache / f"{'0' * 64}.sqfs").write_bytes(b"x")
    assert runtimes.garbage({named.checksum}, 0) == []
    gone = runtimes.garbage({named.checksum}, 1e12)
    assert gone == sorted([other.checksum, "0" * 64])
    for checksum in gone:
        assert runtimes.size(checksum) > 0
        runtimes.remove(checksum)
    assert sorted(path.name for path in runtimes.cache.iterdir()) == sorted(
        [f"{named.checksum}.json", f"{named.checksum}.sqfs", "toolbox-1.sqfs"]
    )


def test_a_save_that_is_killed_anywhere_leaves_nothing_half(tmp_path):
    """At each step either there is no runtime yet, or it is whole; and the next save has nothing to clear away."""
    made = put(Runtimes(tmp_path / "made"), text="x" * 5000)
    data = (tmp_path / "made" / f"{made.checksum}.sqfs").read_bytes()
    for step in killed_at_each_step(lambda: publish(tmp_path / "cache", made, data), tmp_path):
        assert Runtimes(tmp_path / "cache").newest(made.id) in (None, made), step
    assert Runtimes(tmp_path / "cache").newest(made.id) == made


def publish(cache, runtime, data):
    runtimes = Runtimes(cache)
    with runtimes.making(runtime.id):
        if runtimes.newest(runtime.id) is None:
            half = runtimes.half(runtime.id)
            half.write_bytes(data)
            runtimes.publish(half, runtime)


def test_a_reference_that_is_killed_anywhere_is_the_old_or_the_new(tmp_path):
    file = tmp_path / "ot-task-runtime.json"
    old, new = (Reference(f"tools-{one * 12}", one * 64, f"{ROOT}/tools") for one in "12")
    write_reference(file, old)
    for step in killed_at_each_step(lambda: write_reference(file, new), tmp_path):
        assert read_reference(file) in (old, new), step
    assert read_reference(file) == new
