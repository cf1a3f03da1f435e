"""A container that is started again over its layer."""

from pathlib import Path

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images.model import Image, ImageConfig
from pytest_otval.sandbox.base import Bind, Command, Limits
from pytest_otval.trial.layer import Layer
from pytest_otval.trial.living import LivingContainer
from selftests.fakes import Answer


@pytest.fixture
def living(fake_machine, tmp_path):
    def make(script=lambda container, command: None):
        machine = fake_machine(script)
        image = Image("0" * 64, (Path("/nowhere.sqfs"),), "1" * 64, "b", ImageConfig())
        layer = Layer(machine.bench(), image, Limits(), tmp_path)
        return LivingContainer(layer, "none", [Bind(tmp_path, "/logs/agent")]), machine.sandbox, layer

    return make


def command(tmp_path):
    return Command(["true"], tmp_path / "log")


def test_one_after_the_other_over_the_same_layer(living, tmp_path):
    container, sandbox, layer = living(lambda one, command: Answer("memory", None))
    with container:
        assert container.run(command(tmp_path)).ended == "memory"
        layer.written = True
        container.revive()
        assert container.run(command(tmp_path)).ended == "memory"
        first, second = sandbox.containers
    assert first.dead and second.dead and second is not first
    assert first.spec.overlay == second.spec.overlay
    assert [bind.target for bind in first.spec.binds] == ["/logs/agent"]
    assert [bind.target for bind in second.spec.binds] == ["/.singularity.d", "/logs/agent"]


def test_one_that_lives_is_killed_before_another_starts(living):
    container, sandbox, _ = living()
    with container:
        container.revive()
        assert [one.dead for one in sandbox.containers] == [True, False]
    assert all(one.dead for one in sandbox.containers)


@pytest.mark.parametrize(("written", "reason"), [(True, "tampered"), (False, "no-start")])
def test_one_that_does_not_start_again(living, written, reason):
    container, sandbox, layer = living()
    sandbox.refuses = lambda number: "no /bin" if number else ""
    with pytest.raises(Conclusion) as caught, container:
        layer.written = written
        container.revive()
    assert caught.value.reason == reason
    assert sandbox.containers[0].dead
