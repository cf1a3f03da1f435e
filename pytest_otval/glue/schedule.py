"""Work for xdist's workers: a worker gets whole tasks, so that stages share what the process remembers of a task.

xdist's own ``--dist loadgroup`` does not group under pytest 9.2 (pytest-xdist issue 1386), and ``loadscope`` looks up
each item in a list, counts what is done each time, and asks for a new unit while two items of the last one still wait.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

import pytest
from xdist.dsession import get_default_max_worker_restart  # type: ignore[import-untyped]
from xdist.workermanage import WorkerController, parse_tx_spec_config  # type: ignore[import-untyped]

from pytest_otval.glue.locality import Outlooks
from pytest_otval.glue.plan import ENGINE, PLAN
from pytest_otval.glue.units import Known, Look, Queue, Unit, make_units, needs_image, unit_of
from pytest_otval.workspace import Workspace

MOST_RETRIES = 2
"""How often an item whose worker died is given to another one."""


QUICK_AHEAD, QUICK_SECONDS, PACE_ITEMS = 4, 0.02, 10
"""Where items took less than this of late, as n/a ones do, a worker has some left when it hears of the next, or it
would wait for each."""


class TaskScheduling:
    """Hands out units, each to the first worker that is about to run dry (see xdist's ``scheduler.protocol``).

    A worker starts an item only when it knows the next one, so with one item left it counts as run dry; no earlier
    where items take their time, or its next unit would wait behind a long one.

    An item whose worker died, and the rest of its unit with it, goes to the end of the queue: it may take the next
    worker along, and by then little is left to be disturbed.
    """

    def __init__(self, config: pytest.Config, outlook: Look, known: Known = lambda dataset, task, ids: False) -> None:
        self.config = config
        self.collection: Sequence[str] | None = None
        self._outlook = outlook
        self._known = known
        self._wanted = len(parse_tx_spec_config(config))
        self._collected: dict[WorkerController, Sequence[str]] = {}
        self._queue = Queue()
        self._assigned: dict[WorkerController, deque[Unit]] = {}
        self._pace = 1.0
        """Seconds that an item took of late; long until the first have ended."""
        self._restarts = get_default_max_worker_restart(config)
        self._deaths = 0
        self._killed_by: Counter[int] = Counter()
        self._suspects: set[int] = set()

    @property
    def nodes(self) -> list[WorkerController]:
        """The workers."""
        return list(self._assigned)

    @property
    def collection_is_completed(self) -> bool:
        """Whether as many workers as were asked for have told what they collected."""
        return len(self._collected) >= self._wanted

    @property
    def tests_finished(self) -> bool:
        """Whether workers need to hear no more than that there is nothing after their last item."""
        if not self.collection_is_completed or self._queue:
            return False
        return all(self._left(node) < 2 for node in self._assigned)

    @property
    def has_pending(self) -> bool:
        """Whether an item has not ended."""
        return bool(self._queue) or any(self._left(node) for node in self._assigned)

    def _left(self, node: WorkerController) -> int:
        return sum(len(unit.items) for unit in self._assigned[node])

    def deaths_of(self, nodeid: str) -> int:
        """Return how many workers died while they ran an item."""
        return 0 if self.collection is None else self._killed_by[self.collection.index(nodeid)]

    def add_node(self, node: WorkerController) -> None:
        """Take a new worker."""
        self._assigned[node] = deque()

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Take what a worker collected; all must have the same."""
        known = self.collection or next(iter(self._collected.values()), collection)
        if known != collection:
            self._refuse(node, known, collection)
        # One list for all workers: there may be a million items.
        self._collected[node] = known

    def _refuse(self, node: WorkerController, known: Sequence[str], collection: Sequence[str]) -> None:
        others = sorted(set(known) ^ set(collection))
        example = f"such as {others[0]}" if others else "in another order"
        text = f"{node.gateway.id} collected other tests than the first worker, {example}: did files change meanwhile?"
        report = pytest.CollectReport(nodeid=node.gateway.id, outcome="failed", longrepr=text, result=[])
        self.config.hook.pytest_collectreport(report=report)
        del self._assigned[node]
        node.shutdown()
        if not self._assigned:
            self._queue = Queue()

    def schedule(self) -> None:
        """Make units of what was collected, and give each worker its first; later, give new workers theirs."""
        if self.collection is None:
            self.collection = next(iter(self._collected.values()))
            self._queue = Queue(make_units(self.collection, self._outlook, self._known))
            # Where units are few, each worker gets one before any gets two.
            for node in self.nodes:
                if self._queue:
                    self._hand_out(node)
        self._supply_all()

    def _supply_all(self) -> None:
        for node in self.nodes:
            self._supply(node)

    def _supply(self, node: WorkerController) -> None:
        while not node.shutting_down and self._is_low(node):
            if not self._queue:
                node.shutdown()
                return
            self._hand_out(node)

    def _is_low(self, node: WorkerController) -> bool:
        return self._left(node) <= (QUICK_AHEAD if self._pace < QUICK_SECONDS else 1)

    def _hand_out(self, node: WorkerController) -> None:
        units = self._queue.take(node)
        self._assigned[node].extend(units)
        node.send_runtest_some([item for unit in units for item in unit.items])

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Note that an item has ended, and see to the worker's next unit."""
        assert self.collection is not None
        self._pace += (duration - self._pace) / PACE_ITEMS
        units = self._assigned[node]
        unit = units[0]
        unit.items.remove(item_index)
        self._suspects.discard(item_index)
        if not unit.items:
            units.popleft()
        if unit.image and needs_image(self.collection[item_index].rpartition("::")[2]):
            self._queue.image_made(unit.image)
        self._supply(node)

    def mark_test_pending(self, item: str) -> None:
        """Run an item once more, at once; plugins ask for it in ``pytest_handlecrashitem``."""
        assert self.collection is not None
        self._queue.put(Unit(deque([self.collection.index(item)])), first=True)
        self._supply_all()

    def remove_pending_tests_from_node(self, node: WorkerController, indices: Sequence[int]) -> None:
        """Never called: it answers a command that this scheduler does not send."""
        raise NotImplementedError

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a worker and give what it had to others.

        Return the item that it died of, for a report of its death; None where there was none, or it is run again.
        """
        units = self._assigned.pop(node)
        self._queue.forget(node)
        if not units:
            return None
        first = units.popleft()
        for unit in reversed(units):
            self._queue.put(unit, first=True)
        died_of = self._died_of(first)
        self._supply_all()
        return died_of

    def _died_of(self, unit: Unit) -> str | None:
        """Decide about the item that a worker died of, and the rest of its unit."""
        assert self.collection is not None
        item = unit.items[0]
        nodeid = self.collection[item]
        self._deaths += 1
        self._killed_by[item] += 1
        self._suspects.discard(item)
        if self._may_retry(item, nodeid):
            self._suspects.add(item)
            self._queue.put(unit, first=False)
            return None
        unit.items.popleft()
        if unit.items:
            self._queue.put(unit, first=True)
        return nodeid

    def _may_retry(self, item: int, nodeid: str) -> bool:
        """Whether an item gets another try.

        xdist ends the run when more workers died than ``--max-worker-restart`` says, and each suspect may kill one
        more. Tries may use half of that number; the rest is left to items that kill a worker for the first time.
        """
        if unit_of(nodeid) == nodeid or self._killed_by[item] > MOST_RETRIES:
            return False
        return self._restarts is None or self._deaths + len(self._suspects) < self._restarts // 2


def make_scheduler(config: pytest.Config) -> TaskScheduling:
    """Return the scheduler of a run that has a plan."""
    workspace, force_build = Workspace.from_environment(), bool(config.getoption("--otval-force-build"))
    selection, engine = config.stash[PLAN].selection, config.stash[ENGINE]

    def known(dataset: str, task: str, ids: Sequence[str]) -> bool:
        return bool(engine.is_likely_known(ids, selection[dataset].source, task))

    return TaskScheduling(config, Outlooks(selection, workspace.root, force_build).get, known)
