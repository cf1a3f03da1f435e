"""--otval-timeout-multiplier: every limit of a task, wherever it stands."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.task.load import Task
from pytest_otval.task.model import TaskConfig
from pytest_otval.task.scale import with_limits_scaled

CHECK = {"command": "true", "timeout_sec": 3, "start_period_sec": 4, "interval_sec": 5, "start_interval_sec": 6}
CONFIG = {
    "agent": {"timeout_sec": 10},
    "environment": {"build_timeout_sec": 20, "healthcheck": CHECK},
    "verifier": {
        "timeout_sec": 30,
        "environment": {"build_timeout_sec": 40},
        "collect": [{"command": "true", "timeout_sec": 50}],
    },
}
STEPS = {
    "steps": [
        {"name": "one", "agent": {"timeout_sec": 60}, "verifier": {"timeout_sec": 70, "collect": [{"command": "x"}]}},
        {"name": "two", "healthcheck": CHECK},
    ]
}


def task(**tables):
    return Task(Path("/set/tasks/task"), "set", "task", TaskConfig.model_validate(tables), (), "")


def numbers(table, prefix=""):
    """Yield every value of a table by its path."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from numbers(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, entry in enumerate(value):
                yield from numbers(entry, f"{prefix}{name}.{number}.")
        else:
            yield f"{prefix}{name}", value


def test_each_limit_is_scaled_and_nothing_else():
    before, after = task(**CONFIG), with_limits_scaled(task(**CONFIG), 2.5)
    old, new = (dict(numbers(one.config.model_dump())) for one in (before, after))
    changed = {name: new[name] / value for name, value in old.items() if new[name] != value}
    assert changed == dict.fromkeys(
        (
            "agent.timeout_sec",
            "environment.build_timeout_sec",
            "environment.healthcheck.timeout_sec",
            "environment.healthcheck.start_period_sec",
            "environment.healthcheck.interval_sec",
            "verifier.timeout_sec",
            "verifier.environment.build_timeout_sec",
            "verifier.collect.0.timeout_sec",
        ),
        2.5,
    )
    assert replace(after, config=before.config) == before


def test_limits_of_steps():
    one, two = with_limits_scaled(task(**CONFIG, **STEPS), 2).steps
    assert (one.agent_timeout, one.verifier_timeout) == (120, 140)
    assert [hook.timeout_sec for hook in one.collect] == [100, 120]
    assert (two.agent_timeout, two.verifier_timeout) == (20, 1200), "inherited, and Harbor's default"
    assert two.healthcheck.timeout_sec == 6
    assert one.verifier_image.environment.build_timeout_sec == 80


def test_defaults_are_limits_too():
    (step,) = with_limits_scaled(task(), 3).steps
    assert step.verifier_timeout == 1800
    assert step.agent_timeout is None, "no limit stays none"
    assert with_limits_scaled(task(), 3).config.environment.build_timeout_sec == 1800


def test_every_time_of_the_model_is_either_scaled_or_known_not_to_be():
    """A new key of seconds must be thought of."""
    from pytest_otval.task import model, scale

    tables = [one for one in vars(model).values() if isinstance(one, type) and issubclass(one, model.Table)]
    times = {name for table in tables for name in table.model_fields if name.endswith("_sec")}
    assert times == scale.LIMITS | {"start_interval_sec"}


@given(st.floats(min_value=1e-3, max_value=1e6))
def test_any_factor(factor):
    assert with_limits_scaled(task(**CONFIG), factor).config.agent.timeout_sec == pytest.approx(10 * factor)


def test_without_a_config_or_a_factor_nothing_changes():
    broken = replace(task(), config=None)
    assert with_limits_scaled(broken, 2) is broken
    whole = task(**CONFIG)
    assert with_limits_scaled(whole, 1) is whole
