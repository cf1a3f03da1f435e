import os
import time

import pytest
from filelock import FileLock

from pytest_otval.images.garbage import find_garbage, remove_garbage
from pytest_otval.images.inventory import keys_of
from pytest_otval.images.record import image_path, record_path
from selftests.images.store_of_images import add_image, key_of

DAY = 86400


@pytest.fixture
def store(tmp_path):
    """Three old images: 2 lies on 1, 3 stands alone."""
    first = add_image(tmp_path, 1)
    add_image(tmp_path, 2, below=(first.key,))
    add_image(tmp_path, 3)
    age(tmp_path, 1, 2, 3)
    return tmp_path


def age(store, *numbers, days=3):
    for number in numbers:
        for path in (image_path(store, key_of(number)), record_path(store, key_of(number))):
            if path.exists():
                os.utime(path, (time.time() - days * DAY,) * 2)


def going(store, *reached, days=1):
    keys = {key_of(number): number for number in range(10)}
    garbage = find_garbage(store, {key_of(number) for number in reached}, time.time() - days * DAY)
    return sorted(keys[one.key] for one in garbage)


@pytest.mark.parametrize(
    ("reached", "gone"), [((), [1, 2, 3]), ((3,), [1, 2]), ((1,), [2, 3]), ((2,), [3]), ((2, 3), []), ((1, 2, 3), [])]
)
def test_what_is_reached_stays_with_all_below(store, reached, gone):
    assert going(store, *reached) == gone


def test_what_is_young_stays_with_all_below(store):
    age(store, 2, days=0.5)
    assert going(store) == [3]
    assert going(store, days=0.1) == [1, 2, 3]


def test_what_is_being_made_stays(store):
    with FileLock(store / f"{key_of(3)}.lock"):
        assert going(store) == [1, 2]


def test_what_has_no_record_goes_once_it_is_old(store):
    record_path(store, key_of(3)).write_text("{}")
    image_path(store, key_of(4)).write_bytes(b"half")
    assert going(store, 2) == []
    age(store, 3, 4)
    assert going(store, 2) == [3, 4]


def test_nothing_but_images_goes(store):
    others = [store / "toolbox-1.sqfs", store / "tags.jsonl"]
    for path in others:
        path.write_bytes(b"")
    garbage = find_garbage(store, set(), time.time())
    assert remove_garbage(store, garbage) == garbage
    assert sorted(store.iterdir()) == sorted(others)


def test_bytes_are_of_both_files(store):
    (one,) = find_garbage(store, {key_of(2)}, time.time())
    paths = (image_path(store, one.key), record_path(store, one.key))
    assert one.bytes == sum(path.stat().st_size for path in paths)
    assert one.base == "bootstrap:x@1"


def test_what_was_made_anew_since_stays(store):
    garbage = find_garbage(store, set(), time.time() - DAY)
    age(store, 3, days=0)
    with FileLock(store / f"{key_of(2)}.lock"):
        assert [one.key for one in remove_garbage(store, garbage)] == [key_of(1)]
    assert keys_of(store) == sorted([key_of(2), key_of(3)])
