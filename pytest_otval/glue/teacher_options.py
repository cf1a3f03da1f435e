"""The options of attempts by models."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.glue.numbers import positive_integer, positive_number
from pytest_otval.stages.spec import TEACHER, Stage


def add_teacher_options(group: Any) -> None:
    """Add them; each is plain, so that workers get it as it is."""
    group.addoption(
        "--otval-teacher",
        default="",
        metavar="MODEL,...",
        help="models that make attempts in the teacher stage (-m teacher), as their endpoint knows them",
    )
    group.addoption(
        "--otval-k",
        type=positive_integer,
        default=1,
        metavar="N",
        help="attempts of each model at each task (default 1); a larger number later only adds",
    )
    group.addoption(
        "--otval-base-url",
        default="",
        metavar="URL",
        help="OpenAI-compatible endpoint of the models, as http://localhost:8000/v1 (default: as the cluster profile "
        "says)",
    )
    group.addoption(
        "--otval-agent",
        default="mini-swe-agent",
        metavar="NAME",
        help="what drives a model: mini-swe-agent (default), tools (a plain loop of tool calls), or a plugin's",
    )
    group.addoption(
        "--otval-max-steps",
        type=positive_integer,
        default=100,
        metavar="N",
        help="answers of the model that an attempt may take (default 100)",
    )
    group.addoption(
        "--otval-budget-tokens",
        type=positive_integer,
        default=0,
        metavar="N",
        help="stop once the attempts of the run took so many tokens",
    )
    group.addoption(
        "--otval-budget-usd",
        type=positive_number,
        default=0.0,
        metavar="X",
        help="stop once the attempts of the run cost so much, by the prices of the cluster profile",
    )


def require_teacher(config: pytest.Config, stages: Iterable[Stage]) -> None:
    """Raise OtvalUsageError where attempts are asked for by ``-m``, and no model is named that could make them."""
    if re.search(rf"\b{TEACHER.mark}\b", str(config.option.markexpr)) and all(
        stage.mark != TEACHER.mark for stage in stages
    ):
        raise OtvalUsageError(f"-m {config.option.markexpr}: name who makes the attempts: --otval-teacher MODEL")
