import pytest

from pytest_otval.task.model import NetworkMode
from pytest_otval.task.network import declares_public, with_network
from selftests.fakes import make_task

BOTH = '[environment]\nnetwork_mode = "no-network"\n[agent]\nnetwork_mode = "public"\n'
STEPS = """
[[steps]]
name = "one"
[[steps]]
name = "two"
[steps.agent]
network_mode = "public"
"""


@pytest.mark.parametrize(
    ("toml", "declares"),
    [
        ("", False),
        ("[environment]\ncpus = 1\n", False),
        ('[environment]\nnetwork_mode = "public"\n', True),
        ('[environment]\nnetwork_mode = "no-network"\n', False),
        ("[environment]\nallow_internet = true\n", True),
        ("[environment]\nallow_internet = false\n", False),
        ('[verifier]\nnetwork_mode = "public"\n', True),
        ('[agent]\nnetwork_mode = "public"\n', True),
        (STEPS, True),
    ],
)
def test_need_that_is_said(tmp_path, toml, declares):
    assert declares_public(make_task(tmp_path, toml=toml)) is declares


@pytest.mark.parametrize("toml", ["", BOTH, STEPS])
@pytest.mark.parametrize("mode", [NetworkMode.PUBLIC, NetworkMode.NO_NETWORK])
def test_all_phases_get_it(tmp_path, toml, mode):
    task = with_network(make_task(tmp_path, toml=toml), mode)
    assert {one for step in task.steps for one in (step.agent_network, step.verifier_network)} == {str(mode)}
