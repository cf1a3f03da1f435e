"""Trajectories of attempts, read back from evidence. The run may be somebody else's, so they may be anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_otval.evidence import EvidenceError, files
from pytest_otval.llm.atif import NAME

_FILE = f"agent/{NAME}"


class _Part(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)


class Call(_Part):
    """A call of a tool."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]


class Output(_Part):
    """What the model was told of a call."""

    content: str = ""
    source_call_id: str | None = None


class _Observation(_Part):
    results: list[Output]


class _Metrics(_Part):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Step(_Part):
    """A message of a conversation, with what came of its calls."""

    source: Literal["system", "user", "agent"]
    message: str
    reasoning_content: str = ""
    tool_calls: list[Call] = []
    observation: _Observation | None = None
    metrics: _Metrics = _Metrics()
    extra: dict[str, Any] = {}

    @property
    def outputs(self) -> list[Output]:
        """What the model was told of its calls."""
        return self.observation.results if self.observation else []


class _Agent(_Part):
    name: str
    version: str
    tool_definitions: list[dict[str, Any]] = []


class Trajectory(_Part):
    """What is read here of ATIF; fields of other versions are left out."""

    agent: _Agent
    steps: list[Step]


def trajectories(run: Path, place: str) -> Iterator[tuple[str, Trajectory]]:
    """Yield the trajectories of an answer's evidence with the step of the task that each is of; empty for the only one.

    Raises EvidenceError for what is damaged, or no trajectory; OSError.
    """
    for name, data in files(run, place):
        folder = name.removesuffix(_FILE)
        if folder != name and (folder == "" or folder.startswith("steps/")) and folder.count("/") in (0, 2):
            try:
                yield folder.removeprefix("steps/").rstrip("/"), Trajectory.model_validate_json(data)
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(map(str, first["loc"]))
                raise EvidenceError(
                    f"{name!r} is no trajectory: {where + ': ' if where else ''}{first['msg']}"
                ) from None
