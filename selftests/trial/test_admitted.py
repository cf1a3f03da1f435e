"""A trial asks once for all it needs, and its containers get what was granted."""

import threading
import time

import pytest

from pytest_otval.sandbox.admission import Admission, Need
from pytest_otval.sandbox.budget import Budget
from pytest_otval.sandbox.gpus import Gpu
from pytest_otval.settings import VerdictSettings
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.trial.agents.noop import Noop
from pytest_otval.trial.agents.oracle import Oracle
from pytest_otval.trial.layer import environments_of, limits_of
from pytest_otval.trial.trial import run_trial
from selftests.fakes import TOML, FakeImages, FakeMachine, FakeSandbox, make_task, writes_reward
from selftests.sandbox.test_admission import entries

GPUS = (Gpu(0), Gpu(1))
SEPARATE = """
[agent]
timeout_sec = 30.0
[environment]
network_mode = "no-network"
cpus = 2
memory_mb = 100
gpus = 1
[verifier]
timeout_sec = 30.0
environment_mode = "separate"
[verifier.environment]
network_mode = "no-network"
cpus = 1
memory_mb = 300
docker_image = "debian:12"
"""


@pytest.fixture
def trial(tmp_path):
    """Run a trial of a task; return its outcome and the specs of its containers."""

    def run(toml=TOML, agent=None, admission=None):
        sandbox = FakeSandbox(writes_reward("1"))
        machine = FakeMachine(tmp_path, sandbox, FakeImages(), VerdictSettings())
        machine.admission = admission or Admission(tmp_path / "scratch", Budget((4, 5, 6), 4096), lambda: GPUS)
        task = make_task(tmp_path, toml=toml)
        image = machine.images.ensure(None)
        outcome = run_trial(machine.bench(), task, image, agent or Oracle(), "phase", DatasetSettings(), tmp_path / "e")
        assert outcome.conclusion is None and machine.admission.held is None
        return outcome, [container.spec for container in sandbox.containers]

    return run


def test_need_is_the_most_of_all_environments(tmp_path):
    task = make_task(tmp_path, toml=SEPARATE)
    assert Need.of([limits_of(one) for one in environments_of(task)]) == Need(2, 300, 1)


def test_containers_get_the_granted_cores(trial):
    _, specs = trial()
    assert [spec.cores for spec in specs] == [frozenset({4})] * len(specs) != []
    assert not any(spec.gpus for spec in specs)


def test_a_gpu_is_for_the_environment_that_asks_for_one(trial):
    _, specs = trial(SEPARATE)
    *agent, verifier = specs
    assert [spec.gpus for spec in agent] == [GPUS[:1]] * len(agent) != []
    assert (verifier.gpus, verifier.cores, verifier.limits.cpus) == ((), {4, 5}, 1)


def test_the_libraries_of_a_gpu_are_not_covered(trial):
    covered = [
        {bind.target for bind in spec.binds if bind.target.startswith("/.singularity.d")}
        for spec in trial(SEPARATE.replace("gpus = 1", "gpus = 0"))[1] + trial(SEPARATE)[1]
    ]
    assert {"/.singularity.d"} in covered
    assert {"/.singularity.d/env", "/.singularity.d/actions"} in covered


def test_waiting_is_no_part_of_the_trials_time(trial, tmp_path):
    admission = Admission(tmp_path / "scratch", Budget((0,), 4096))
    begun = threading.Event()

    def hold():
        with Admission(tmp_path / "scratch", Budget((0,), 4096)).grant(Need()):
            begun.set()
            while len(entries(tmp_path / "scratch")) < 2:
                time.sleep(0.005)
            time.sleep(0.3)

    (tmp_path / "scratch").mkdir()
    holder = threading.Thread(target=hold)
    holder.start()
    begun.wait()
    began = time.monotonic()
    outcome, _ = trial(agent=Noop(), admission=admission)
    spent = time.monotonic() - began
    holder.join()
    assert outcome.seconds["waited"] >= 0.3
    assert outcome.seconds["total"] + outcome.seconds["waited"] <= spent
