"""What hooks add: asked once in each process, and refused where two things have one name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pytest_otval.stages.spec import Stage

if TYPE_CHECKING:
    from pytest_otval.checks.registry import Check
    from pytest_otval.images.bases import ImageSource
    from pytest_otval.llm.agents.base import ModelAgent
    from pytest_otval.profile import Profile
    from pytest_otval.report.columns import Column
    from pytest_otval.trial.agents.base import Agent

T = TypeVar("T")


def _by_name(what: str, answers: Iterable[Iterable[T]], name_of: Callable[[T], str]) -> dict[str, T]:
    # pluggy asks the plugin that registered last first; ours was there before those of a conftest or of ``-p``.
    named: dict[str, T] = {}
    for one in (one for answer in reversed(list(answers)) for one in answer):
        if name_of(one) in named:
            raise pytest.UsageError(f"two plugins give {what} {name_of(one)!r}: remove or rename one")
        named[name_of(one)] = one
    return named


def places(config: pytest.Config) -> list[Path]:
    """Return the folders below which ``datasets/NAME`` is looked for."""
    return [path for answer in reversed(config.hook.pytest_otval_datasets(config=config)) for path in answer]


_STAGES = pytest.StashKey[Mapping[str, Stage]]()


def stages(config: pytest.Config) -> Mapping[str, Stage]:
    """Return every stage by name, in the order they run. Raises UsageError."""
    if _STAGES not in config.stash:
        found = _by_name("stage", config.hook.pytest_otval_stages(config=config), lambda stage: stage.name)
        for stage in found.values():
            if not stage.mark.isidentifier():
                raise pytest.UsageError(f"stage {stage.mark!r}: its name is also its mark, so it must be an identifier")
        config.stash[_STAGES] = found
    return config.stash[_STAGES]


def ask_for_stages_again(config: pytest.Config) -> None:
    """Note that options changed on which stages depend: which models make attempts, and how many."""
    if _STAGES in config.stash:
        del config.stash[_STAGES]


def checks(config: pytest.Config) -> Mapping[str, Check]:
    """Return every check by id. Raises UsageError."""
    return _by_name("check", config.hook.pytest_otval_checks(config=config), lambda check: check.id)


def agents(config: pytest.Config) -> Mapping[str, Agent]:
    """Return every agent by name. Raises UsageError."""
    return _by_name("agent", config.hook.pytest_otval_agents(config=config), lambda agent: agent.name)


def model_agents(config: pytest.Config) -> Mapping[str, ModelAgent]:
    """Return every agent that a model drives, by name. Raises UsageError."""
    answers = config.hook.pytest_otval_model_agents(config=config)
    return _by_name("agent of models", answers, lambda agent: agent.name)


def image_sources(config: pytest.Config, profile: Profile, store: Path, offline: bool) -> Mapping[str, ImageSource]:
    """Return every source of base images by name. Raises UsageError."""
    answers: Any = config.hook.pytest_otval_image_sources(config=config, profile=profile, store=store, offline=offline)
    return _by_name("image source", answers, lambda source: source.name)


def columns(config: pytest.Config) -> Mapping[str, Column]:
    """Return every column by title. Raises UsageError."""
    return _by_name("report column", config.hook.pytest_otval_report_columns(config=config), lambda one: one.title)
