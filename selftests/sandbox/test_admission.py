"""The sum of what runs is never more than the node, whatever processes ask, wait and die."""

import json
import multiprocessing
import os
import random
import signal
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import Conclusion
from pytest_otval.sandbox.admission import Admission, Need
from pytest_otval.sandbox.base import Limits
from pytest_otval.sandbox.budget import Budget
from pytest_otval.sandbox.gpus import Gpu

FORK = multiprocessing.get_context("fork")
GPUS = (Gpu(0, model="NVIDIA A100-SXM4-80GB"), Gpu(3, model="NVIDIA L40"))


@pytest.fixture
def ask(tmp_path):
    """Return a new admission to one pool: each is as good as a process of its own."""
    return lambda cores=4, memory=1000: Admission(tmp_path, Budget(tuple(range(10, 10 + cores)), memory), lambda: GPUS)


def entries(folder):
    (path,) = folder.glob("admission-*.json")
    return json.loads(path.read_text())["entries"]


def wait_until(condition):
    while not condition():
        time.sleep(0.005)


class Waiting(threading.Thread):
    """Asks in a thread, and holds until it is told to stop."""

    def __init__(self, admission, need, folder, log=None):
        super().__init__(daemon=True)
        self.granted, self.stop = threading.Event(), threading.Event()
        self.admission, self.need, self.log = admission, need, log if log is not None else []
        before = len(entries(folder))
        self.start()
        wait_until(lambda: len(entries(folder)) > before)

    def run(self):
        with self.admission.grant(self.need) as self.grant:
            self.log.append(self.need)
            self.granted.set()
            self.stop.wait()

    def end(self):
        self.stop.set()
        self.join()


def test_holders_have_cores_of_their_own(ask, tmp_path):
    with ask().grant(Need(cpus=1.5)) as first, ask().grant(Need(cpus=0.2)) as second, ask().grant(Need()) as third:
        assert (len(first.cores), len(second.cores), len(third.cores)) == (2, 1, 1)
        assert first.cores | second.cores | third.cores == {10, 11, 12, 13}
    assert entries(tmp_path) == []


@pytest.mark.parametrize(
    ("held", "need"), [(Need(3), Need(2)), (Need(1, 600), Need(1, 401)), (Need(gpus=1), Need(gpus=2))]
)
def test_what_is_not_free_is_waited_for(ask, tmp_path, held, need):
    with ask().grant(held):
        waiting = Waiting(ask(), need, tmp_path)
        assert not waiting.granted.wait(0.2)
    assert waiting.granted.wait(10)
    assert waiting.grant.waited >= 0.2
    waiting.end()
    assert waiting.admission.waited == waiting.grant.waited


def test_cores_that_are_shared(ask, tmp_path):
    """They are spread first, and never shared with who does not share."""
    with ExitStack() as stack:
        grants = [stack.enter_context(ask(2).grant(Need(share=3))) for _ in range(6)]
        assert [sum(grant.cores == {core} for grant in grants[:2]) for core in (10, 11)] == [1, 1]
        assert [sum(grant.cores == {core} for grant in grants) for core in (10, 11)] == [3, 3]
        waiting = Waiting(ask(2), Need(share=3), tmp_path)
        assert not waiting.granted.wait(0.2)
    assert waiting.granted.wait(10)
    with ask(2).grant(Need()) as alone:
        assert not alone.cores & waiting.grant.cores
        another = Waiting(ask(2), Need(), tmp_path)
        assert not another.granted.wait(0.2), "one core is held alone, the other is shared"
        waiting.end()
        assert another.granted.wait(10)
    another.end()


@pytest.mark.parametrize(("first", "second"), [(1, 4), (4, 1), (2, 4), (4, 2)])
def test_who_shares_with_fewest_decides(ask, tmp_path, first, second):
    with ExitStack() as stack:
        stack.enter_context(ask(1).grant(Need(share=first)))
        if min(first, second) > 1:
            stack.enter_context(ask(1).grant(Need(share=second)))
        waiting = Waiting(ask(1), Need(share=second), tmp_path)
        assert not waiting.granted.wait(0.1)
    assert waiting.granted.wait(10)
    waiting.end()


def test_memory_is_not_shared(ask, tmp_path):
    with ask().grant(Need(1, 600, share=4)):
        waiting = Waiting(ask(), Need(1, 600, share=4), tmp_path)
        assert not waiting.granted.wait(0.2)
    assert waiting.granted.wait(10)
    waiting.end()


def test_what_uses_up_the_node_shares_with_nobody(ask, tmp_path):
    with ask().grant(Need(1, 5000, share=4)):
        waiting = Waiting(ask(), Need(share=4), tmp_path)
        assert not waiting.granted.wait(0.2)
    assert waiting.granted.wait(10)
    waiting.end()


def test_what_is_free_is_not_waited_for(ask, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it waits"))
    with ask().grant(Need(3, 600)), ask().grant(Need(1, 400)) as second:
        assert len(second.cores) == 1


def test_a_big_task_is_not_passed_over(ask, tmp_path):
    log = []
    with ask().grant(Need(1)):
        big = Waiting(ask(), Need(4), tmp_path, log)
        small = Waiting(ask(), Need(1), tmp_path, log)
        assert not small.granted.wait(0.2), "it would fit, but is not in turn"
    assert big.granted.wait(10)
    assert not small.granted.is_set()
    big.end()
    assert small.granted.wait(10)
    small.end()
    assert log == [Need(4), Need(1)]


def test_who_lacks_only_a_gpu_lets_others_pass(ask, tmp_path):
    with ask().grant(Need(gpus=2)):
        waiting = Waiting(ask(), Need(gpus=1), tmp_path)
        with ask().grant(Need()) as passed:
            assert passed.cores
        another = Waiting(ask(), Need(gpus=1), tmp_path)
        assert not waiting.granted.is_set() and not another.granted.is_set()
    for thread in (waiting, another):
        assert thread.granted.wait(10)
    for thread in (waiting, another):
        thread.end()


@pytest.mark.parametrize("need", [Need(5), Need(1, 1001), Need(100, 10**6)])
def test_what_is_larger_than_the_node_gets_the_node(ask, tmp_path, need):
    with ask().grant(need) as grant:
        assert len(grant.cores) == min(4, need.cpus)
        alone = Waiting(ask(), Need(), tmp_path)
        assert not alone.granted.wait(0.1)
    alone.granted.wait(10)
    alone.end()


def test_a_grant_within_a_grant_is_the_outer_one(ask, tmp_path):
    admission = ask()
    with admission.grant(Need(4, 1000)) as outer:
        with admission.grant(Need(4, 1000)) as inner:
            assert inner is outer
        assert admission.held is outer
        assert len(entries(tmp_path)) == 1
    assert admission.held is None


def test_gpus_are_held_and_chosen_by_type(ask):
    with ask().grant(Need(gpus=1, gpu_types=("L40",))) as first, ask().grant(Need(gpus=1)) as second:
        assert (first.gpus, second.gpus) == ((GPUS[1],), (GPUS[0],))
    with pytest.raises(Conclusion, match="no-gpu: the task asks for 1 GPUs of type H100, and this machine has 0"):
        ask().grant(Need(gpus=1, gpu_types=("H100",))).__enter__()


def test_an_error_in_the_block_gives_back(ask, tmp_path):
    with pytest.raises(ZeroDivisionError), ask().grant(Need(4)):
        raise ZeroDivisionError
    assert entries(tmp_path) == []


def hold(admission, need, said):
    with admission.grant(need):
        said.send(None)
        time.sleep(60)


@pytest.mark.parametrize("reaped", [True, False])
def test_a_killed_holder_holds_nothing(ask, reaped):
    """Also one that its parent has not waited for, as xdist's controller does not."""
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=hold, args=(ask(), Need(4, 1000, 2), theirs))
    process.start()
    ours.recv()
    os.kill(process.pid, signal.SIGKILL)
    if reaped:
        process.join()
    with ask().grant(Need(4, 1000, 2)) as grant:
        assert len(grant.cores) == 4
    process.join()


def test_a_killed_waiter_keeps_nobody_waiting(ask, tmp_path):
    ours, theirs = FORK.Pipe()
    with ask().grant(Need(1)):
        process = FORK.Process(target=hold, args=(ask(), Need(4), theirs))
        process.start()
        wait_until(lambda: len(entries(tmp_path)) == 2)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with ask().grant(Need(1)):
            assert len(entries(tmp_path)) == 2
    assert not ours.poll()


def work(admission, number, log):
    chance = random.Random(number)
    for _ in range(8):
        cpus, memory, gpus = chance.choice([0.5, 1, 2, 3, 9]), chance.choice([0, 200, 500, 900, 5000]), [0, 0, 1]
        need = Need(cpus, memory, chance.choice(gpus), share=chance.choice([1, 1, 2, 3]))
        with admission.grant(need) as grant:
            began = time.monotonic()
            time.sleep(chance.uniform(0, 0.01))
            gpus = [gpu.minor for gpu in grant.gpus]
            line = [began, time.monotonic(), sorted(grant.cores), need.memory_mb, gpus, need.share]
        with log.open("a") as file:
            file.write(json.dumps(line) + "\n")
        if number == 0 and chance.random() < 0.3:
            os.kill(os.getpid(), signal.SIGKILL)


def test_no_more_than_the_node_is_ever_held(ask, tmp_path):
    log = tmp_path / "log"
    processes = [FORK.Process(target=work, args=(ask(), number, log)) for number in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(lines) >= 40
    for began, _, *_ in lines:
        beside = [line for line in lines if line[0] <= began < line[1]]
        cores = [core for line in beside for core in line[2]]
        gpus = [gpu for line in beside for gpu in line[4]]
        for core in set(cores):
            assert cores.count(core) <= min(line[5] for line in beside if core in line[2])
        assert len(set(gpus)) == len(gpus)
        assert sum(line[3] for line in beside) <= 1000 or len(beside) == 1


@given(st.binary(max_size=60) | st.text('{}[]":,0123456789abcdnorty_tickens', max_size=60).map(str.encode))
def test_a_damaged_file_is_begun_anew(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("pool")
    path = folder / "admission-node.json"
    path.write_bytes(data)
    with Admission(folder, Budget((0,), 10)).grant(Need()) as grant:
        assert grant.cores == {0}


def test_another_version_may_know_more_of_what_is_held(ask, tmp_path):
    with ask().grant(Need(3)) as first:
        (path,) = tmp_path.glob("admission-*.json")
        values = json.loads(path.read_text())
        values["entries"][0]["of_a_later_version"] = 1
        path.write_text(json.dumps(values))
        with ask().grant(Need(1)) as second:
            assert len(first.cores | second.cores) == 4


def test_what_another_boot_held_is_free(ask, tmp_path):
    with ask().grant(Need(4)):
        (path,) = tmp_path.glob("admission-*.json")
        values = json.loads(path.read_text())
    path.write_text(json.dumps({**values, "boot": "another", "entries": [{}]}))
    with ask().grant(Need(4)) as grant:
        assert len(grant.cores) == 4


def test_slurm_jobs_have_pools_of_their_own(ask, monkeypatch):
    with ExitStack() as stack:
        for job in ("1", "2"):
            monkeypatch.setenv("SLURM_JOB_ID", job)
            assert len(stack.enter_context(ask().grant(Need(4))).cores) == 4


def full(*args):
    raise OSError(28, "No space left on device")


def test_full_scratch(ask, monkeypatch):
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(Conclusion, match=r"^host-disk-full: the scratch /.* is full: free some space$"):
        ask().grant(Need()).__enter__()


def test_what_is_held_is_given_back_on_a_full_disk(ask, tmp_path, monkeypatch):
    with ask().grant(Need(2)), monkeypatch.context() as patch:
        with ask().grant(Need(2)):
            patch.setattr(Path, "write_bytes", full)
        assert len(entries(tmp_path)) == 1
    with ask().grant(Need(4)):
        pass


def test_scratch_that_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        Conclusion, match=r"^no-start: the scratch /.*/file cannot be used: Not a directory: set OT_SCR"
    ):
        Admission(tmp_path / "file", Budget((0,), 10)).grant(Need()).__enter__()


def test_need_of_containers_one_after_the_other():
    assert Need.of([Limits()]) == Need(1, 0)
    assert Need.of([Limits(0.5, 100), Limits(None, 300, 7, 2, ("T4",))]) == Need(1, 300, 2, ("T4",))
    assert Need.of([Limits(3)]) == Need(3, 0)
