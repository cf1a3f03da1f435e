"""The hooks by which other pytest plugins add to ours.

Our own stages, checks, agents and image sources come by them too.

Each hook returns a list; an object with the name of an earlier one is refused. An implementation is a function of the
hook's name in a conftest.py, in a ``-p`` plugin or in an installed one (entry point group ``pytest11``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_otval.checks.registry import Check
    from pytest_otval.images.bases import ImageSource
    from pytest_otval.llm.agents.base import ModelAgent
    from pytest_otval.profile import Profile
    from pytest_otval.report.columns import Column
    from pytest_otval.stages.spec import Stage
    from pytest_otval.trial.agents.base import Agent


@pytest.hookspec
def pytest_otval_datasets(config: pytest.Config) -> Sequence[Path]:  # type: ignore[empty-body]
    """Return folders of datasets to look in for ``datasets/NAME/...``, besides rootdir and workspace.

    Asked once in each process, before arguments are read. A folder holds ``datasets/``.
    """


@pytest.hookspec
def pytest_otval_stages(config: pytest.Config) -> Sequence[Stage]:  # type: ignore[empty-body]
    """Return stages. They run in the order in which they are returned, ours first.

    Asked once in each process, before collection: build the list from names alone and import nothing heavy.
    """


@pytest.hookspec
def pytest_otval_checks(config: pytest.Config) -> Sequence[Check]:  # type: ignore[empty-body]
    """Return checks for the static stage. Asked once in each process, before its first answer."""


@pytest.hookspec
def pytest_otval_agents(config: pytest.Config) -> Sequence[Agent]:  # type: ignore[empty-body]
    """Return agents that stages may let act, by their names (``machine.agent(NAME)``)."""


@pytest.hookspec
def pytest_otval_model_agents(config: pytest.Config) -> Sequence[ModelAgent]:  # type: ignore[empty-body]
    """Return agents that a model drives, for the teacher stage (``--otval-agent NAME``)."""


@pytest.hookspec
def pytest_otval_image_sources(  # type: ignore[empty-body]
    config: pytest.Config, profile: Profile, store: Path, offline: bool
) -> Sequence[ImageSource]:
    """Return sources of base images; ``image_sources`` of the cluster profile says which are asked, in which order.

    ``store`` is the folder of packed images, where a source may remember what it resolved. ``offline``: this run must
    not reach any network.
    """


@pytest.hookspec
def pytest_otval_report_columns(config: pytest.Config) -> Sequence[Column]:  # type: ignore[empty-body]
    """Return columns for reports. Their values are made when an item ends and kept in its ledger line."""
