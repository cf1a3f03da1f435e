"""All stages of a task go to one worker, and nothing is lost when a worker dies."""

import json
from collections import Counter, defaultdict
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.glue.locality import Outlook
from pytest_otval.glue.schedule import MOST_RETRIES, QUICK_AHEAD, TaskScheduling
from pytest_otval.glue.units import QUICK_TOGETHER, unit_of
from pytest_otval.history import read_history
from selftests.glue.conftest import ids

pytest_plugins = ["pytester"]


class Gateway:
    def __init__(self, id):
        self.id = id


class Node:
    """A worker of xdist: it starts an item when it knows the next one or that there is none."""

    def __init__(self, name):
        self.gateway = Gateway(name)
        self.queue = []
        self.shutting_down = False

    def send_runtest_some(self, indices):
        assert not self.shutting_down
        self.queue += indices

    def shutdown(self):
        self.shutting_down = True

    @property
    def may_run(self):
        return bool(self.queue) and (len(self.queue) > 1 or self.shutting_down)


class Config:
    """xdist's options, and the reports of collection that went wrong."""

    def __init__(self, workers, restarts=None):
        self.workers = workers
        self.option = SimpleNamespace(maxworkerrestart=restarts, numprocesses=workers)
        self.refused = []
        self.hook = SimpleNamespace(pytest_collectreport=lambda report: self.refused.append(str(report.longrepr)))

    def getvalue(self, name):
        return [f"{self.workers}*popen"]


def scheduler(collection, workers, outlook=lambda dataset, task, with_image: Outlook(), restarts=None):
    sched = TaskScheduling(Config(workers, restarts), outlook)
    nodes = [Node(f"gw{number}") for number in range(workers)]
    for node in nodes:
        sched.add_node(node)
    for node in nodes:
        assert not sched.collection_is_completed
        sched.add_node_collection(node, list(collection))
    sched.schedule()
    return sched, nodes


def replace(sched, nodes, node, collection):
    """Let a worker die; return what xdist is to report, and put another in its place."""
    died_of = sched.remove_node(node)
    nodes.remove(node)
    nodes.append(spare := Node(f"{node.gateway.id}+"))
    sched.add_node(spare)
    sched.add_node_collection(spare, list(collection))
    sched.schedule()
    return died_of


def see_to_the_end(sched):
    """Do what xdist does when it hears that tests are finished."""
    if sched.tests_finished:
        for node in sched.nodes:
            node.shutdown()


collections = st.lists(st.integers(1, 5), max_size=8).map(
    lambda sizes: [
        *(id for number, size in enumerate(sizes) for id in ids(f"t{number}", stages=tuple("abcde"[:size]))),
        *(f"test_plain.py::test_{number}" for number in range(len(sizes))),
    ]
)


@given(collections, st.integers(1, 4), st.data())
def test_each_item_runs_once_and_a_task_on_one_worker(collection, workers, data):
    sched, nodes = scheduler(collection, workers)
    ran = []
    while able := [node for node in nodes if node.may_run]:
        node = data.draw(st.sampled_from(able))
        item = node.queue.pop(0)
        ran.append((collection[item], node))
        sched.mark_test_complete(node, item)
        see_to_the_end(sched)
    assert sorted(id for id, _ in ran) == sorted(collection)
    homes = defaultdict(set)
    for id, node in ran:
        homes[unit_of(id)].add(node)
    assert all(len(home) == 1 for home in homes.values())
    assert not sched.has_pending


@given(collections.filter(len), st.integers(1, 3), st.integers(0, 9), st.data())
def test_when_workers_die_each_item_runs_or_is_what_one_died_of(collection, workers, restarts, data):
    sched, nodes = scheduler(collection, workers, restarts=restarts)
    ran, died_of, deaths = [], [], Counter()
    while able := [node for node in nodes if node.may_run]:
        node = data.draw(st.sampled_from(able))
        item = node.queue[0]
        if data.draw(st.integers(0, 3)) == 0:
            deaths[item] += 1
            reported = replace(sched, nodes, node, collection)
            assert reported in (None, collection[item])
            if reported is not None:
                died_of.append(reported)
                assert sched.deaths_of(reported) == deaths[item]
        else:
            node.queue.pop(0)
            ran.append(collection[item])
            sched.mark_test_complete(node, item)
        see_to_the_end(sched)
    assert sorted(ran + died_of) == sorted(collection)
    assert max(deaths.values(), default=0) <= 1 + MOST_RETRIES
    assert sum(deaths.values()) - len(deaths) <= restarts // 2
    assert all(unit_of(collection[item]) != collection[item] for item, count in deaths.items() if count > 1)


def test_what_killed_a_worker_waits_until_all_else_is_handed_out():
    collection = ids("a", "b", "c", "d", stages=("build", "oracle"))
    sched, nodes = scheduler(collection, 1)
    nodes[0].queue.pop(0)
    sched.mark_test_complete(nodes[0], 0)
    assert nodes[0].queue == [1, 2, 3]
    assert replace(sched, nodes, nodes[0], collection) is None
    assert nodes[0].queue == [2, 3], "the unit that had not begun goes on at once"
    order = []
    while nodes[0].may_run:
        order.append(nodes[0].queue.pop(0))
        sched.mark_test_complete(nodes[0], order[-1])
    assert order == [2, 3, 4, 5, 6, 7, 1]


def test_a_deadly_item_is_reported_at_the_third_death_and_the_rest_follows():
    collection = ids("a", stages=("build", "oracle", "noop"))
    sched, nodes = scheduler(collection, 1, restarts="8")
    assert [replace(sched, nodes, nodes[0], collection) for _ in range(3)] == [None, None, collection[0]]
    assert nodes[0].queue == [1, 2]


def test_tries_leave_half_of_the_restarts():
    collection = ids(*"abcdef", stages=("oracle",))
    sched, nodes = scheduler(collection, 1, restarts="6")
    reported = []
    while nodes[0].may_run:
        reported.append(replace(sched, nodes, nodes[0], collection))
    assert len(reported) - len(collection) <= 3
    assert sorted(filter(None, reported)) == collection


def test_a_worker_that_collected_other_tests_runs_none():
    sched, nodes = scheduler(collection := ids("a", "b"), 1)
    sched.remove_node(nodes[0])
    sched.add_node(spare := Node("gw1"))
    sched.add_node_collection(spare, [*collection, *ids("new")])
    sched.schedule()
    assert spare.shutting_down and not spare.queue and sched.tests_finished
    (text,) = sched.config.refused
    assert text.startswith(f"gw1 collected other tests than the first worker, such as {ids('new')[1]}: did files")


def test_an_item_that_a_plugin_wants_again_is_run_again():
    sched, nodes = scheduler(collection := ids("a"), 1)
    replace(sched, nodes, nodes[0], collection)
    sched.mark_test_pending(collection[2])
    order = []
    while nodes[0].may_run:
        order.append(nodes[0].queue.pop(0))
        sched.mark_test_complete(nodes[0], order[-1])
        see_to_the_end(sched)
    assert sorted(order) == [0, 1, 2, 2, 3]


def test_each_worker_gets_a_task_before_any_gets_two():
    _, nodes = scheduler(ids("a", "b", stages=("oracle",)), 2)
    assert [node.queue for node in nodes] == [[0], [1]]


@pytest.mark.parametrize(("seconds", "ahead"), [(0.001, QUICK_AHEAD), (5.0, 1)])
@pytest.mark.parametrize(("stage", "together"), [("static", QUICK_TOGETHER), ("oracle", 1)])
def test_only_quick_items_wait_behind_others(seconds, ahead, stage, together):
    collection = ids(*(f"t{number:03}" for number in range(200)), stages=(stage,))
    sched, (node,) = scheduler(collection, 1)
    assert node.queue == list(range(max(2, together)))
    most = 0
    while node.may_run:
        sched.mark_test_complete(node, node.queue.pop(0), duration=seconds)
        most = max(most, len(node.queue))
    assert most == ahead + together
    assert not sched.has_pending


def test_an_image_is_made_by_one_worker_while_there_is_other_work():
    def outlook(dataset, task, with_image):
        return Outlook("shared" if task < "c" else task)

    collection = ids(*"abcd", stages=("static", "build"))
    sched, (first, second) = scheduler(collection, 2, outlook)
    assert (first.queue, second.queue) == ([0, 1], [4, 5])
    second.queue.remove(4)
    sched.mark_test_complete(second, 4)
    assert second.queue == [5, 6, 7], "b would have to wait for the image of a"
    for item in (0, 1):
        first.queue.remove(item)
        sched.mark_test_complete(first, item)
    assert first.queue == [2, 3]


def test_a_waiting_task_goes_to_whoever_is_free_first():
    """A worker gets its next task when only the last item of the present one is left."""
    collection = ids("a", "b", "c")
    sched, (first, second) = scheduler(collection, 2)
    assert [len(node.queue) for node in (first, second)] == [4, 4]
    for item in (4, 5):
        second.queue.remove(item)
        sched.mark_test_complete(second, item)
    assert len(second.queue) == 2, "the last but one still has to run"
    second.queue.remove(6)
    sched.mark_test_complete(second, 6)
    assert second.queue == [7, 8, 9, 10, 11]
    assert first.queue == [0, 1, 2, 3]


def answered(project):
    """Return the node ids that each worker answered, in order."""
    files = sorted((project.runs[-1] / "ledger").glob("*.jsonl"))
    return [[json.loads(line)["id"] for line in file.read_text().splitlines()] for file in files]


def test_a_run_keeps_tasks_together(project):
    project.dataset(tasks={name: {} for name in "abcde"})
    project.pytester.makepyfile(test_plain="def test_one(): pass\ndef test_two(): pass\n")
    outcome = project.process("-n2", "datasets/demo", "test_plain.py")
    assert (outcome.status, outcome.counts) == (0, {"passed": 23})
    for task in "abcde":
        (home,) = [done for done in answered(project) if ids(task)[0] in done]
        assert [id for id in home if f"/{task}/" in id] == ids(task)
    known = read_history(project.workspace / "history", "demo")["c"]
    assert (known.image, known.seconds) == ("k", dict.fromkeys(("static", "build", "oracle", "noop"), 0.5))


@pytest.mark.parametrize(("args", "ours"), [((), True), (("--dist", "loadfile"), False)])
def test_another_distribution_can_be_chosen(project, args, ours):
    project.dataset(tasks={"a": {}})
    outcome = project.process("-v", "-n1", "datasets/demo", *args)
    assert outcome.status == 0
    assert ours == any("scheduling tests via TaskScheduling" in line for line in outcome.lines)


def test_runs_without_tasks_are_left_to_xdist(project):
    project.pytester.makepyfile(test_plain="def test_one(): pass\n")
    outcome = project.process("-v", "-n1", "test_plain.py")
    assert "scheduling tests via LoadScheduling" in outcome.lines
