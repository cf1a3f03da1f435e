"""The words every other module uses: verdicts, reason classes, findings, results, node ids.

Nothing here touches a file, a process or pytest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, get_args

NAME = re.compile(r"[A-Za-z0-9._-]+")
"""What a dataset, task or stage name must match entirely, so that it can stand in a node id."""


class Verdict(StrEnum):
    """What a stage says about a task."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"
    BLOCKED = "blocked"
    NA = "n/a"


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason class: the verdict it fixes and what it means to a user."""

    verdict: Verdict
    meaning: str


def _reasons(verdict: Verdict, **meanings: str) -> dict[str, Reason]:
    return {name.replace("_", "-"): Reason(verdict, meaning) for name, meaning in meanings.items()}


REASONS: Mapping[str, Reason] = {
    **_reasons(
        Verdict.PASS,
        expected="the expected answer",
        unsolved="an attempt was scored below the threshold: an answer about the model, and no fault of the task",
    ),
    **_reasons(
        Verdict.FAIL,
        bad_task="task.toml or the task's layout cannot be read, so no question can be asked",
        static_findings="the files of the task have at least one error, or what --otval-severity counts as one",
        build_failed="an instruction of the Dockerfile failed",
        image_leaks="the image gives answers away, or what --otval-severity counts as that; other stages run on it",
        build_timeout="the image was not built within build_timeout_sec",
        wrong_reward="the score is on the wrong side of the threshold",
        no_reward="the verifier ended without a reward file",
        reward_unreadable="the reward file is no reward: empty, not a number, not flat JSON, or not UTF-8",
        reward_not_regular="the reward path is a link, a FIFO, a folder or a device",
        reward_too_large="the reward file is larger than 64 KiB",
        reward_out_of_range="the score lies outside the declared range",
        reward_conflict="reward.json and reward.txt give different deciding values",
        verifier_timeout="the verifier did not end within its limit",
        agent_timeout="the reference solution did not end within the agent's limit",
        setup_failed="setup_files/setup.sh or tests/setup.sh ended with a status other than 0",
        setup_timeout="setup_files/setup.sh did not end within its limit",
        solution_failed="solve.sh ended with a status other than 0 (decides under --otval-rules strict only)",
        collect_failed="a [[verifier.collect]] command failed",
        healthcheck_failed="the health check never succeeded",
        memory_limit="the task used more than memory_mb",
        storage_limit="the task wrote more than storage_mb",
        tampered="the container's root was left so that no clean container starts on it",
        judged_faulty="a criterion that blocks failed and could not be refuted, or a trial showed it",
        attack_paid="a script that solves nothing scored above the threshold; its id is in the headline",
        not_hermetic="the network decides whether the reference solution is paid, and the task declares no need of it",
        flaky="some attempts gave the expected answer and some did not",
        env_missing="task.toml asks for a variable of the host that is not set and has no default",
    ),
    **_reasons(
        Verdict.ERROR,
        no_start="a container did not start on the pristine image",
        host_disk_full="the host's scratch or workspace is full",
        dataset_unreadable="a file of a packed dataset can no longer be read",
        network_unreachable="a registry or package mirror did not answer",
        base_unavailable="no image source could give the base image",
        missing_tool="a program of the host is missing",
        runtime_missing="a cached runtime is missing or does not match its checksum",
        changed="the task changed after the run had compared it with its contract",
        endpoint_failed="the endpoint of a model gave no answer, so nothing is known",
        budget_spent="what the run may spend on models is spent",
        judge_unreadable="the judge's answer could not be understood, nor could the one it gave when told so",
        killed="the worker or its container was killed from outside",
        crashed="it ended the job of a cluster that ran it, also when it ran alone",
        internal="a bug of ours",
    ),
    **_reasons(Verdict.BLOCKED, image_failed="its image cannot be built"),
    **_reasons(
        Verdict.NA,
        no_solution="there is no reference solution",
        compose="the environment needs docker compose",
        windows="the environment needs Windows",
        no_gpu="the task asks for GPUs or TPUs and this machine has none",
        needs_uid_mapping="the task needs owners or users that this user cannot map",
        allowlist="the task asks for an allowlist network, which cannot be enforced here",
        needs_network="the task asks for the public network and this run has none",
        unsupported_instruction="the Dockerfile uses an instruction that is not supported yet",
        no_attempts="no attempt of a model at the task is there to be reviewed",
        no_attack="no attack of those chosen could be tried on the task",
        clock_not_shifted="programs of the image do not follow a shifted clock, such as static ones and those of musl",
    ),
}
"""The closed list of reason classes; a class fixes the verdict."""


class Severity(StrEnum):
    """How bad a finding is. Errors are facts; only they fail the static stage, unless ``--otval-severity`` differs."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    def at_least(self, other: Severity) -> bool:
        """Whether it is as bad as another, or worse."""
        return _RANK[self] >= _RANK[other]


_RANK = {Severity.INFO: 0, Severity.WARNING: 1, Severity.ERROR: 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about one place of a task's files."""

    check: str
    """Stable id of the check, e.g. ``toml-unknown-field``."""
    severity: Severity
    message: str
    path: str
    """Path relative to the task folder, with ``/``."""
    line: int | None = None
    """1-based; None where the finding is about the whole file."""
    fix: str = ""
    """What to do about it, one line."""
    allowed: str = ""
    """Why somebody allows it; empty where nobody does. What is allowed is recorded and fails nothing."""
    allowed_by: str = ""
    """Where that is said: ``tests/test.sh:4``, ``task.toml:12``, ``dataset.toml (OWNER until DATE)``."""

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{where}: {self.check}: {self.message}" + (f" ({self.fix})" if self.fix else "")

    def as_dict(self) -> dict[str, Any]:
        """Return the finding in plain JSON types."""
        values: dict[str, Any] = {
            "check": self.check,
            "severity": str(self.severity),
            "message": self.message,
            "path": self.path,
            "line": self.line,
            "fix": self.fix,
        }
        return {**values, "allowed": self.allowed, "allowed_by": self.allowed_by} if self.allowed else values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Finding:
        """Return the finding that ``as_dict`` gave. Raises TypeError, ValueError or KeyError for anything else."""
        return cls(**{**values, "severity": Severity(values["severity"])})


def printable(text: str) -> str:
    """Return a text that any terminal, XML or JSON writer takes: hostile names hold controls and broken UTF-8."""
    safe = text.encode("utf-8", "backslashreplace").decode()
    if safe.isprintable():
        return safe
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in safe)


class OtvalUsageError(Exception):
    """The command line, a path or a settings file is wrong: one line, exit status 4."""


class Conclusion(Exception):
    """Raised anywhere below a stage to end it with a reason class.

    ``headline`` is one line for the user; ``log`` the last lines that show it.
    """

    def __init__(self, reason: str, headline: str, log: str = "") -> None:
        assert reason in REASONS, reason
        super().__init__(f"{reason}: {headline}")
        self.reason = reason
        self.headline = headline
        self.log = log


@dataclass(frozen=True, slots=True)
class StageResult:
    """The answer of one stage about one task."""

    reason: str
    headline: str = ""
    log: str = ""
    """Last lines of the log that decides, for the terminal; never more than a few KiB."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The stage's part of the ledger's result line, in plain JSON types."""

    @property
    def verdict(self) -> Verdict:
        """The verdict that the reason class fixes."""
        return REASONS[self.reason].verdict


Rules = Literal["harbor", "default", "strict"]
Network = Literal["none", "public"]
Isolation = Literal["none", "fresh", "masked", "pristine"]
"""Of a shared verifier, from the weakest to the strongest. none: as Harbor has it, one container for both phases;
fresh: a new container over what the agent left, after the hand-over, with an environment of its own; masked: the same
with the image's own system folders; pristine: the image as built, with what the task lets the agent change."""
LEVELS: tuple[Isolation, ...] = get_args(Isolation)
"""From the weakest to the strongest."""
RESTORING: tuple[Isolation, ...] = ("masked", "pristine")
"""Levels that put something back."""


def node_id(dataset: str, task: str | None, stage: str) -> str:
    """Return the node id of a stage of a task, or of the dataset itself where ``task`` is None.

    Made from names alone, so it is the same whatever the rootdir, cwd or workspace.
    """
    if task is None:
        return f"datasets/{dataset}/dataset.toml::{stage}"
    return f"datasets/{dataset}/tasks/{task}/task.toml::{stage}"


def stage_of(item: str) -> str:
    """Return the stage of an item by its name, the end of its node id: ``teacher`` of ``teacher[MODEL-3]``."""
    return item.partition("[")[0]
