"""What is handed out as a whole, in which order, and to whom."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.glue.locality import Outlook
from pytest_otval.glue.units import QUICK_TOGETHER, Queue, Unit, in_order, make_units, unit_of
from selftests.glue.conftest import ids


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        ("datasets/d/tasks/t/task.toml::build", "datasets/d/tasks/t/task.toml"),
        ("datasets/d/dataset.toml::static", "datasets/d/dataset.toml::static"),
        ("test_plain.py::test_one[task.toml::x]", "test_plain.py::test_one[task.toml::x]"),
    ],
)
def test_unit_of(nodeid, unit):
    assert unit_of(nodeid) == unit


def test_units_of_a_collection():
    def outlook(dataset, task, with_image):
        assert (dataset, with_image) == ("demo", task == "a")
        return {"a": Outlook("x", True, {"build": 2.0, "noop": 1.0, "judge": 9.0}), "b": Outlook()}[task]

    collection = [*ids("a"), "test_plain.py::test_one", *ids("b", stages=("static",))]
    first, plain, last = make_units(collection, outlook)
    assert (list(first.items), first.image, first.ready, first.seconds) == ([0, 1, 2, 3], "x", True, 3.0)
    assert (list(plain.items), plain.image, plain.quick) == ([4], "", False)
    assert (list(last.items), last.image, last.seconds, last.quick) == ([5], "", None, True)


def names(units):
    return "".join(unit.items for unit in units)


def unit(name, seconds=None, image="", ready=False):
    return Unit(name, image, ready, seconds)


def test_longest_first():
    assert names(in_order([unit("a", 1), unit("b", 100), unit("c", 10), unit("d", 1000)])) == "dbca"


def test_without_history_images_are_together_in_the_order_of_collection():
    units = [unit(name, None, image) for name, image in zip("abcdef", ["x", "y", "x", "", "y", ""], strict=True)]
    assert names(in_order(units)) == "acbedf"


def test_images_are_together_among_tasks_of_a_size():
    units = [unit("a", 5, "x"), unit("b", 7, "y"), unit("c", 6, "x"), unit("d", 500, "y"), unit("e", 6.5, "y")]
    assert names(in_order(units)) == "dcabe"


def test_what_is_unknown_is_as_usual():
    assert names(in_order([unit("a", 1), unit("b"), unit("c", 60)])) == "cba"


units = st.lists(
    st.builds(unit, st.just("x"), st.none() | st.floats(0, 1e7), st.sampled_from(["", "x", "y", "z"]), st.booleans()),
    max_size=12,
)


@given(units, st.data())
def test_each_unit_is_taken_once_and_images_are_made_by_one(units, data):
    queue, taken, making = Queue(units), [], {}
    ready = {unit.image for unit in units if unit.ready} | {""}
    while queue:
        worker = data.draw(st.integers(0, 3))
        waiting = [one for one in units if not any(one is other for other in taken)]
        (got,) = queue.take(worker)
        taken.append(got)
        if got.image not in ready:
            maker = making.setdefault(got.image, worker)
            others = [one for one in waiting if one.image in ready or making.get(one.image, worker) == worker]
            assert maker == worker or not others
            if data.draw(st.booleans()):
                queue.image_made(got.image)
                ready.add(got.image)
            elif maker == worker and data.draw(st.booleans()):
                queue.forget(worker)
                making = {image: one for image, one in making.items() if one != worker}
        elif data.draw(st.integers(0, 3)) == 0:
            queue.put(taken.pop(), first=data.draw(st.booleans()))
    assert sorted(map(id, taken)) == sorted(map(id, units))


def test_what_comes_back_is_first_or_last():
    queue = Queue([unit("a"), unit("b")])
    queue.put(unit("c"), first=True)
    queue.put(unit("d"), first=False)
    assert names(queue.take(0)[0] for _ in range(4)) == "cabd"


def test_quick_units_are_taken_together():
    queue = Queue([*(Unit("q", quick=True) for _ in range(QUICK_TOGETHER + 1)), unit("a")])
    assert [names(queue.take(0)) for _ in range(3)] == ["q" * QUICK_TOGETHER, "q", "a"]
