"""What options need of this machine, looked at before the first item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_otval.core import Conclusion, OtvalUsageError, printable
from pytest_otval.glue import extensions
from pytest_otval.glue.plan import OUT, PLAN

if TYPE_CHECKING:
    from pytest_otval.profile import ModelSection, Profile


def require_clock(config: pytest.Config) -> None:
    """Raise UsageError where ``--otval-clock-shift`` finds no library that shifts a clock."""
    shift = str(config.getoption("--otval-clock-shift"))
    if PLAN not in config.stash or not shift:
        return
    from pytest_otval.trial.clock import clock_library

    try:
        clock_library()
    except Conclusion as conclusion:
        raise pytest.UsageError(f"--otval-clock-shift {shift}: {conclusion.headline}") from None


def require_models(config: pytest.Config, profile: Profile) -> dict[str, ModelSection]:
    """Return the models that are to make attempts, by name.

    Raises OtvalUsageError where attempts are asked for that could not be made: no agent, no address, no key.
    """
    plan, known = config.stash[PLAN], extensions.stages(config)
    named = {
        stage for dataset in plan.selection.values() for stages in dataset.tasks.values() for stage in stages or ()
    }
    models = {known[name].model for name in named.union(plan.stages) if name in known} - {""}
    if not models:
        return {}
    from pytest_otval.llm.agents.base import agent_named
    from pytest_otval.llm.budget import Budget
    from pytest_otval.llm.client import EndpointChat, section_for

    agent = agent_named(extensions.model_agents(config), str(config.getoption("--otval-agent")))
    # It may find out now that what it needs is not installed.
    assert agent.version
    budget = Budget(config.stash[OUT], usd=config.getoption("--otval-budget-usd") or None)
    base_url = str(config.getoption("--otval-base-url"))
    sections = {model: section_for(profile, model, base_url) for model in sorted(models)}
    for model, section in sections.items():
        if section.serve.in_job and not section.base_url:
            _require_served(config, model, section)
            # Where it will be is known in the job.
            section = section.model_copy(update={"base_url": "http://localhost/v1"})
        EndpointChat(model, section, budget)
    return sections


def _require_served(config: pytest.Config, model: str, section: ModelSection) -> None:
    """Raise OtvalUsageError where no job serves a model, or none could, since its weights are not here."""
    from pytest_otval.llm.weights import find_weights
    from pytest_otval.workspace import Workspace

    if not config.getoption("--otval-submit"):
        words = "is served by the jobs of --otval-submit alone: here start `models serve`, and give --otval-base-url"
        raise OtvalUsageError(f"the model {printable(model)} {words}")
    find_weights(Workspace.from_environment().models, section.repository or model, section.revision)
