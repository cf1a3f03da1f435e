"""What options need of this machine, looked at before the first item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_otval.core import Conclusion, OtvalUsageError, printable
from pytest_otval.glue import extensions
from pytest_otval.glue.plan import OUT, PLAN
from pytest_otval.stages.spec import JUDGE_MARKS
from pytest_otval.workspace import Workspace

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

    Raises OtvalUsageError where a model that is wanted could not be asked: no agent, address, key or rubric.
    """
    plan, known = config.stash[PLAN], extensions.stages(config)
    named = {
        stage for dataset in plan.selection.values() for stages in dataset.tasks.values() for stage in stages or ()
    }
    stages = [known[name] for name in named.union(plan.stages) if name in known]
    models = {stage.model for stage in stages} - {""}
    judges = {str(config.getoption("--otval-judge")) for stage in stages if stage.mark in JUDGE_MARKS}
    if not models and not judges:
        return {}
    from pytest_otval.llm.budget import Budget
    from pytest_otval.llm.client import EndpointChat, section_for

    if models:
        _require_agent(config)
    budget = Budget(config.stash[OUT], usd=config.getoption("--otval-budget-usd") or None)
    base_url = str(config.getoption("--otval-base-url"))
    sections = {model: section_for(profile, model, base_url) for model in sorted(models | judges)}
    for model, section in sections.items():
        if section.serve.in_job and not section.base_url:
            _require_served(config, model, section)
            # Where it will be is known in the job.
            section = section.model_copy(update={"base_url": "http://localhost/v1"})
        EndpointChat(model, section, budget)
    for judge in judges:
        _require_rubrics(config, sections[judge])
    return {model: sections[model] for model in sorted(models)}


def _require_agent(config: pytest.Config) -> None:
    from pytest_otval.llm.agents.base import agent_named

    agent = agent_named(extensions.model_agents(config), str(config.getoption("--otval-agent")))
    # It may find out now that what it needs is not installed.
    assert agent.version


def _require_served(config: pytest.Config, model: str, section: ModelSection) -> None:
    """Raise OtvalUsageError where no job serves a model, or none could, since its weights are not here."""
    from pytest_otval.llm.weights import find_weights

    if not config.getoption("--otval-submit"):
        words = "is served by the jobs of --otval-submit alone: here start `models serve`, and give --otval-base-url"
        raise OtvalUsageError(f"the model {printable(model)} {words}")
    find_weights(Workspace.from_environment().models, section.repository or model, section.revision)


def _require_rubrics(config: pytest.Config, judge: ModelSection) -> None:
    from pytest_otval.glue.options import rubric_files
    from pytest_otval.judge.rubric import rubrics
    from pytest_otval.stages.judging import characters_for

    for rubric in rubrics(rubric_files(config), [config.rootpath, Workspace.from_environment().root]).values():
        characters_for(rubric, judge)
