"""Watching a trial from around its sandbox: which phase did what."""

import pytest

from pytest_otval.sandbox.base import UPPER, Command, ContainerSpec
from pytest_otval.sandbox.traffic import Heard
from pytest_otval.trial.watch import WatchingSandbox
from selftests.fakes import FakeSandbox
from selftests.sandbox.test_traffic import tcp

PHASES = {"/solution/solve.sh": "agent", "check": "agent", "/tests/setup.sh": "verifier", "/tests/test.sh": "verifier"}


def command(tmp_path, last):
    return Command(["sh", "-c", '"$0"', last], tmp_path / "log", phase=PHASES.get(last))


@pytest.fixture
def world(tmp_path):
    """A sandbox whose commands write a file of the layer each, and connect somewhere."""
    upper = tmp_path / "overlay" / UPPER
    upper.mkdir(parents=True)

    def script(container, command):
        name = command.argv[-1].strip("/").replace("/", "-")
        (upper / name).write_text("x")
        container.spec.traffic.hear(tcp("192.0.2.1", 1 + len(list(upper.iterdir()))))

    return WatchingSandbox(FakeSandbox(script)), tmp_path / "overlay"


def run(world, tmp_path, *lasts):
    sandbox, overlay = world
    with sandbox.open(ContainerSpec((), overlay)) as container:
        for last in lasts:
            container.run(command(tmp_path, last))
    return [
        (one.phase, [change.path for change in one.changes.found], len(one.heard.addresses)) for one in sandbox.seen
    ]


def test_a_container_a_phase(world, tmp_path):
    run(world, tmp_path, "ours", "/solution/solve.sh")
    run(world, tmp_path, "ours")
    assert run(world, tmp_path, "/tests/setup.sh", "/tests/test.sh") == [
        ("agent", ["/solution-solve.sh"], 1),
        ("verifier", ["/tests-setup.sh", "/tests-test.sh"], 2),
    ]


def test_two_phases_in_one_container(world, tmp_path):
    assert run(world, tmp_path, "ours", "check", "/solution/solve.sh", "ours", "/tests/test.sh") == [
        ("agent", ["/check", "/solution-solve.sh"], 2),
        ("verifier", ["/tests-test.sh"], 1),
    ]


def test_what_ended_with_an_error_was_seen_too(world, tmp_path):
    sandbox, overlay = world
    with pytest.raises(RuntimeError), sandbox.open(ContainerSpec((), overlay)) as container:
        container.run(command(tmp_path, "/solution/solve.sh"))
        raise RuntimeError
    assert [one.phase for one in sandbox.seen] == ["agent"]


def test_a_sandbox_that_does_not_listen_is_no_silence(world, tmp_path):
    run(world, tmp_path, "/solution/solve.sh")
    (seen,) = world[0].seen
    assert seen.heard == Heard((), ("tcp 192.0.2.1:2",), 0, "nothing listened")
