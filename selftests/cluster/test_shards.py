"""Shard plans: nothing lost, nothing twice, tasks whole, balanced."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.cluster.shards import (
    CHUNKS,
    Limits,
    Work,
    core_seconds,
    plan_shards,
    read_plan,
    shard_count,
    write_plan,
)
from pytest_otval.core import OtvalUsageError, node_id

STAGES = ("static", "build", "oracle", "noop")


@st.composite
def works(draw):
    tasks = draw(st.integers(1, 40))
    images = st.sampled_from([(), ("a",), ("b",), ("a", "c")])
    seconds = st.one_of(st.none(), st.floats(0, 5000))
    items = []
    for task in range(tasks):
        image = draw(images)
        for stage in STAGES[: draw(st.integers(1, 4))]:
            items.append(Work(node_id("d", f"t{task}", stage), image, draw(seconds), draw(st.integers(1, 4))))
    return items


@given(works(), st.integers(1, 60))
def test_each_item_is_in_one_shard_and_no_shard_is_empty(items, count):
    plan = plan_shards(items, count)
    assert sorted(number for shard in plan for number in shard) == list(range(len(items)))
    assert len(plan) == min(count, len({item.task for item in items}))
    assert all(shard and shard == sorted(shard) for shard in plan)


@given(works(), st.integers(1, 60))
def test_the_stages_of_a_task_stay_together(items, count):
    places = {}
    for number, shard in enumerate(plan_shards(items, count)):
        for item in shard:
            places.setdefault(items[item].task, set()).add(number)
    assert all(len(shards) == 1 for shards in places.values())


@given(works(), st.integers(1, 60))
def test_no_shard_is_fuller_than_the_mean_by_more_than_a_chunk(items, count):
    plan, seconds = plan_shards(items, count), core_seconds(items)
    tasks = {}
    for item, one in zip(items, seconds, strict=True):
        tasks[item.task] = tasks.get(item.task, 0) + one
    mean = sum(seconds) / len(plan)
    loads = [sum(seconds[number] for number in shard) for shard in plan]
    assert max(loads) <= mean + max(max(tasks.values()), mean / CHUNKS) + 1e-3


@given(works(), st.integers(1, 60))
def test_a_plan_depends_on_its_items_alone(items, count):
    assert plan_shards(items, count) == plan_shards(list(items), count)


def test_tasks_of_one_image_go_to_few_shards():
    items = [Work(node_id("d", f"t{task:03}", "oracle"), (f"i{task % 20}",), 10.0) for task in range(200)]
    plan = plan_shards(items, 4)
    homes = {}
    for number, shard in enumerate(plan):
        for item in shard:
            homes.setdefault(items[item].images, set()).add(number)
    assert all(len(shards) == 1 for shards in homes.values())


def test_one_image_of_all_tasks_does_not_keep_them_in_one_shard():
    items = [Work(node_id("d", f"t{task}", "oracle"), ("i",), 10.0) for task in range(8)]
    assert sorted(map(len, plan_shards(items, 4))) == [2, 2, 2, 2]


def test_no_items_are_no_shards():
    assert plan_shards([], 3) == []


def limits(cpus=48, wall_seconds=24 * 3600, most=1000):
    return Limits(cpus, wall_seconds, most)


def items_of(tasks, seconds):
    return [Work(node_id("d", f"t{task}", "oracle"), (), seconds) for task in range(tasks)]


def test_little_work_is_one_shard():
    assert shard_count(items_of(100, 10.0), limits()) == 1


def test_shards_take_about_an_hour():
    # 200 core-hours on 48 cores.
    assert shard_count(items_of(7200, 100.0), limits()) == 5


def test_a_short_time_limit_makes_more_shards():
    assert shard_count(items_of(7200, 100.0), limits(wall_seconds=1800)) == 17


def test_there_are_not_more_shards_than_a_site_allows():
    assert shard_count(items_of(7200, 100.0), limits(most=3)) == 3
    assert shard_count(items_of(2, 36000.0), limits(cpus=1)) == 2


def test_work_that_no_allowed_number_of_jobs_does_is_refused():
    with pytest.raises(OtvalUsageError, match=r"200\.0 core-hours .* 2 jobs of 4 cores and 1\.0 h"):
        shard_count(items_of(7200, 100.0), limits(cpus=4, wall_seconds=3600, most=2))


def test_a_plan_is_read_as_it_was_written(tmp_path):
    write_plan(tmp_path, [[0, 2], [1]])
    assert read_plan(tmp_path) == [[0, 2], [1]]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"v": 2, "shards": []}', '{"v": 1, "shards": [["a"]]}', '{"v": 1, "shards": [[-1]]}']
)
def test_what_is_no_plan_is_told_in_one_line(tmp_path, text):
    (tmp_path / "shards.json").write_text(text)
    with pytest.raises(OtvalUsageError, match=r"was not submitted: it has no shards\.json"):
        read_plan(tmp_path)
