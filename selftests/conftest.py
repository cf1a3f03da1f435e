"""Fixtures of all selftests. Integration tests share one machine and one image."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from pytest_otval.core import StageResult
from pytest_otval.profile import Profile, load_profile
from pytest_otval.settings import RunSettings, Settings, VerdictSettings
from pytest_otval.stages.machine import Machine, own_extensions, probe_flavour
from pytest_otval.stages.question import Question
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.task.load import Task
from pytest_otval.workspace import Workspace
from selftests.fakes import FakeImages, FakeMachine, FakeSandbox, ask
from selftests.hub import FakeHub
from selftests.localslurm import any_localslurm

REPOSITORY = Path(__file__).parents[1]

# A busy machine is no failure, and nothing is written into the checkout. CI tries the same examples each time, so that
# what it refuses can be seen again; new ones are found by developers.
settings.register_profile(
    "selftests",
    deadline=None,
    database=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("selftests")


@pytest.fixture(scope="session", autouse=True)
def as_from_a_terminal():
    """Let programs that tests start find what a person's shell gives them, however the tests were started.

    They hear Ctrl-C: a job in the background ignores it, and so would all it starts. Where they are pytest, they have
    no options of this one.
    """
    os.environ.pop("PYTEST_ADDOPTS", None)
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def fake_machine(tmp_path):
    """Make a machine over a fake sandbox: ``fake_machine(script=..., images=..., rules=...)``."""

    def make(script=lambda container, command: None, images=None, maps_uids=True, **verdict):
        sandbox = FakeSandbox(script, maps_uids)
        return FakeMachine(tmp_path, sandbox, images or FakeImages(), VerdictSettings(**verdict))

    return make


@pytest.fixture
def any_hub(monkeypatch):
    """A Hugging Face hub on loopback in place of the large one; a test adds its repositories."""
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    with FakeHub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.fixture
def small_scratch():
    """Return a folder on a file system of 20 MB that the user can write to; ``.ci/run`` mounts one."""
    small = os.environ.get("OT_TEST_SMALL_SCRATCH", "")
    if not small and not os.environ.get("CI"):
        pytest.skip("OT_TEST_SMALL_SCRATCH names no small file system (mount -t tmpfs -o size=20m)")
    return small


@pytest.fixture(scope="session")
def localslurm():
    """A real Slurm of two nodes; jobs belong to an ordinary user."""
    with any_localslurm() as slurm:
        yield slurm


@pytest.fixture(scope="session")
def real(tmp_path_factory):
    """A real machine with its own scratch folder, and the workspace of ``$OT_WORKSPACE`` if it is set."""
    patch = pytest.MonkeyPatch()
    root = os.environ.get("OT_WORKSPACE") or str(tmp_path_factory.mktemp("workspace"))
    patch.setenv("OT_SCRATCH", str(tmp_path_factory.mktemp("scratch")))
    workspace = Workspace(Path(root))
    # A registry would give another image than the recipe, and is not there on every machine.
    local = load_profile("local", REPOSITORY)
    profile = Profile.model_validate({**local.model_dump(), "image_sources": ("bootstrap",)})
    flavour, _ = probe_flavour(workspace, profile)
    out = tmp_path_factory.mktemp("out")
    machine = Machine(
        Settings(RunSettings(out), VerdictSettings(flavour=flavour)), workspace, profile, own_extensions()
    )
    yield machine
    left = [path.name for path in machine.scratch.folder.iterdir() if path.name not in ("owner.json", "sessions")]
    machine.close()
    patch.undo()
    assert not left, "scratch folders were left"


@pytest.fixture(scope="session")
def image(real):
    """A Debian with bash and coreutils."""
    return real.images.ensure_recipe("bookworm")


@pytest.fixture
def ask_real(real, image, tmp_path):
    """Ask a stage about a task on the real machine."""

    def run(stage: str, task: Task, settings: DatasetSettings | None = None, **verdict: str) -> StageResult:
        rules = VerdictSettings(flavour=real.settings.verdict.flavour, **verdict)
        machine = _with_settings(real, rules)
        result, retries = ask(stage, machine, Question(task, settings or DatasetSettings(), tmp_path / "evidence"))
        assert retries == 0, result
        return result

    return run


def _with_settings(real: Machine, verdict: VerdictSettings) -> Machine:
    """Another machine over the same sandbox, images and scratch."""
    machine = Machine(Settings(real.settings.run, verdict), real._workspace, real.profile, own_extensions())
    machine.__dict__.update(scratch=real.scratch, sandbox=real.sandbox, images=real.images)
    return machine


def pytest_collection_modifyitems(config, items):
    """Leave out what takes minutes unless ``-m`` speaks of it."""
    if "slow" in config.option.markexpr:
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]
