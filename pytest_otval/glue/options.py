"""The command line: every option of ours, and the settings they make."""

from __future__ import annotations

import argparse
import difflib
import re
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_otval.core import LEVELS, OtvalUsageError, Severity
from pytest_otval.glue.judge_options import add_judge_options
from pytest_otval.glue.numbers import positive_integer, positive_number
from pytest_otval.glue.submit_options import SUBMIT_OPTIONS, add_submit_options
from pytest_otval.glue.teacher_options import add_teacher_options
from pytest_otval.settings import RunSettings, Settings, VerdictSettings
from pytest_otval.stages.spec import Stage, own_stages
from pytest_otval.workspace import Workspace, default_cluster

ERRORS_ONLY = 8
"""Exit status where there were errors of ours or the machine's and nothing worse."""

DURATION = re.compile(r"-?[0-9]{1,9}[smhd]")


def add_options(parser: pytest.Parser) -> None:
    """Add the ``--otval-*`` options; each is plain, so that workers get it as it is."""
    group = parser.getgroup("otval", "validation of RL tasks")
    group.addoption(
        "--otval-rules",
        choices=("harbor", "default", "strict"),
        default="default",
        help="whose rules decide a trial: Harbor's, ours, or ours with solve.sh's exit status counted",
    )
    group.addoption(
        "--otval-network",
        choices=("task", "none"),
        default="task",
        help="network of trials: what the task asks for, or none at all",
    )
    group.addoption(
        "--otval-force-build",
        action="store_true",
        default=False,
        help="build the Dockerfile even where docker_image is set",
    )
    group.addoption(
        "--otval-timeout-multiplier",
        type=positive_number,
        default=1.0,
        metavar="X",
        help="factor on every time limit of a task (default 1)",
    )
    group.addoption(
        "--otval-shuffle-tests",
        action="store_true",
        default=False,
        help="run a verifier's tests in random order, where it runs pytest",
    )
    group.addoption(
        "--otval-clock-shift",
        type=duration,
        default="",
        metavar="TIME",
        help="put the verifier's clock forward, as 400d or -12h",
    )
    group.addoption(
        "--otval-isolation",
        choices=(*LEVELS, "auto"),
        default=None,
        help="how far a verifier is kept from what the agent left; auto: the strongest level at which oracle and noop "
        "pass (default: as task or dataset says, else fresh)",
    )
    group.addoption(
        "--otval-attacks",
        type=attack_ids,
        default="",
        metavar="ID,...",
        help="the attacks that the adversary stage tries (default: all of the battery)",
    )
    group.addoption(
        "--otval-repeat",
        type=positive_integer,
        default=1,
        metavar="N",
        help="attempts of oracle and noop; mixed answers are a failure of class flaky",
    )
    add_teacher_options(group)
    add_judge_options(group)
    group.addoption(
        "--otval-severity",
        choices=[str(severity) for severity in Severity],
        default=str(Severity.ERROR),
        help="the mildest finding that fails the static stage (default error)",
    )
    group.addoption(
        "--otval-linters",
        action="store_true",
        default=False,
        help="ask shellcheck and hadolint in the static stage, too",
    )
    group.addoption(
        "--otval-fix",
        action="store_true",
        default=False,
        help="repair what static finds and can surely repair, in the tasks themselves, and show what was changed",
    )
    group.addoption(
        "--otval-save-runtimes",
        action="store_true",
        default=False,
        help="install and save the runtimes that tasks' scripts ask for, and write which into the tasks",
    )
    group.addoption(
        "--otval-offline",
        action="store_true",
        default=False,
        help="fetch nothing: tell before the run which images, runtimes and datasets are missing, and stop",
    )
    group.addoption(
        "--otval-tasks", default="", metavar="GLOB", help="take only tasks whose names match a shell pattern"
    )
    group.addoption(
        "--otval-limit",
        type=positive_integer,
        default=0,
        metavar="N",
        help="take only the first N tasks of each dataset, by name",
    )
    group.addoption(
        "--otval-stop-if",
        default="",
        metavar="EXPR",
        help="start no more items when so many ended in errors, as 'infra > 5%%' or 'infra > 10'",
    )
    group.addoption(
        "--otval-resume",
        default="",
        metavar="RUN",
        help="go on with a run, by its folder or as `latest`: what it has answered is told again, all else is asked",
    )
    group.addoption(
        "--otval-reuse",
        action="store_true",
        default=False,
        help="take answers from earlier runs, where task, settings, image, runtimes and our code are the same",
    )
    group.addoption(
        "--otval-prepare-contract",
        default="",
        metavar="FILE",
        help="run nothing: write down tasks with their digests, stages, settings, images and what is expected",
    )
    group.addoption(
        "--otval-strict-images",
        action="store_true",
        default=False,
        help="with --otval-prepare-contract: fix images by their bytes too, not only by what they are made from",
    )
    group.addoption(
        "--otval-contract", default="", metavar="FILE", help="run what a contract says, and refuse where that changed"
    )
    group.addoption(
        "--otval-shard", default="", metavar="I/N", help="with --otval-contract: only the I-th of N parts of it"
    )
    group.addoption(
        "--otval-out",
        default="",
        metavar="DIR",
        help="run folder, as --otval-out=DIR (default $OT_WORKSPACE/runs/TIME-ID)",
    )
    group.addoption(
        "--otval-keep",
        action="store_true",
        default=False,
        help="keep the scratch folders of trials for a day, and evidence as loose files",
    )
    group.addoption(
        "--otval-cluster", default="", metavar="NAME", help="cluster profile (default $OT_CLUSTER, else local)"
    )
    add_submit_options(group)


def duration(text: str) -> str:
    """Return a time span as it is, once it is known to be one or empty. Raises ArgumentTypeError."""
    if text and not DURATION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no time span: write a number and s, m, h or d, as 400d")
    return text


def attack_ids(text: str) -> str:
    """Return ids of attacks as they are, once each of them is known. Raises ArgumentTypeError."""
    if text:
        from pytest_otval.attacks.battery import battery

        for name in text.split(","):
            if name not in battery():
                close = difflib.get_close_matches(name, battery(), n=1)
                hint = f"did you mean {close[0]}?" if close else "docs/adversary.md lists them"
                raise argparse.ArgumentTypeError(f"there is no attack {name!r}: {hint}")
    return text


def cluster_name(config: pytest.Config) -> str:
    """Return the name of the cluster profile."""
    return str(config.getoption("--otval-cluster")) or default_cluster()


def run_folder(config: pytest.Config, workspace: Workspace) -> Path:
    """Return the run folder of this run; it is not made here."""
    chosen = str(config.getoption("--otval-out"))
    if chosen:
        return Path(chosen).absolute()
    return workspace.runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"


VERDICT_OPTIONS = (
    "rules",
    "network",
    "force_build",
    "timeout_multiplier",
    "shuffle_tests",
    "clock_shift",
    "isolation",
    "attacks",
    "severity",
    "linters",
    "repeat",
    "teacher",
    "k",
    "judge",
    "votes",
    "rubric",
    "agent",
    "max_steps",
)
"""Settings that a contract fixes; each has the option of its name."""

_LISTS = ("attacks", "teacher", "rubric")
"""Settings that are lists, and text with commas on the command line."""


def option_of(setting: str) -> str:
    """Return the option that makes a setting."""
    return f"--otval-{setting.replace('_', '-')}"


def contract_settings(config: pytest.Config) -> dict[str, Any]:
    """Return the settings of the command line that a contract fixes, where they are not the usual ones."""
    from pytest_otval.contract.settings import chosen_settings

    settings = make_settings(config, Path(), "", "main")
    return chosen_settings(settings.verdict, settings.run.attempts)


def apply_settings(config: pytest.Config, settings: Mapping[str, Any]) -> None:
    """Set options to what a contract says. Raises OtvalUsageError for a setting that there is not."""
    for name, value in settings.items():
        if name not in VERDICT_OPTIONS:
            raise OtvalUsageError(f"the contract has a setting {name!r}, which this version does not know")
        setattr(config.option, f"otval_{name}", ",".join(value) if name in _LISTS else value)


def _words(config: pytest.Config, option: str) -> tuple[str, ...]:
    """Return the words of an option that has commas between them, each once, in their order."""
    return tuple(dict.fromkeys(filter(None, str(config.getoption(option)).split(","))))


def rubric_files(config: pytest.Config) -> tuple[str, ...]:
    """Return the files of rubrics that are given, as a worker finds them, too."""
    return tuple(str(config.invocation_params.dir / name) for name in _words(config, "--otval-rubric"))


def own_stages_of(config: pytest.Config) -> tuple[Stage, ...]:
    """Return our stages, one for each attempt that options ask for, a judge's if there is one. Raises UsageError."""
    try:
        judge = bool(config.getoption("--otval-judge"))
        return own_stages(_words(config, "--otval-teacher"), config.getoption("--otval-k"), judge)
    except OtvalUsageError as error:
        raise as_usage_error(error) from None


def make_settings(config: pytest.Config, out: Path, flavour: str, writer: str) -> Settings:
    """Return the run's settings from the command line."""
    verdict = VerdictSettings(
        rules=config.getoption("--otval-rules"),
        network=config.getoption("--otval-network"),
        force_build=config.getoption("--otval-force-build"),
        timeout_multiplier=config.getoption("--otval-timeout-multiplier"),
        shuffle_tests=config.getoption("--otval-shuffle-tests"),
        clock_shift=config.getoption("--otval-clock-shift"),
        isolation=config.getoption("--otval-isolation"),
        attacks=tuple(sorted(_words(config, "--otval-attacks"))),
        severity=Severity(config.getoption("--otval-severity")),
        linters=config.getoption("--otval-linters"),
        agent=config.getoption("--otval-agent"),
        max_steps=config.getoption("--otval-max-steps"),
        flavour=flavour,
    )
    run = RunSettings(
        out,
        cluster=cluster_name(config),
        keep=config.getoption("--otval-keep"),
        fix=config.getoption("--otval-fix"),
        save_runtimes=config.getoption("--otval-save-runtimes"),
        offline=config.getoption("--otval-offline"),
        repeat=config.getoption("--otval-repeat"),
        teacher=_words(config, "--otval-teacher"),
        k=config.getoption("--otval-k"),
        judge=config.getoption("--otval-judge"),
        votes=config.getoption("--otval-votes"),
        rubric=rubric_files(config),
        trials=config.getoption("--otval-trials"),
        base_url=config.getoption("--otval-base-url"),
        budget_tokens=config.getoption("--otval-budget-tokens"),
        budget_usd=config.getoption("--otval-budget-usd"),
        stop_if=config.getoption("--otval-stop-if"),
        limit=config.getoption("--otval-limit"),
        tasks=config.getoption("--otval-tasks"),
        resume=config.getoption("--otval-resume"),
        reuse=config.getoption("--otval-reuse"),
        contract=config.getoption("--otval-contract"),
        shard=config.getoption("--otval-shard"),
        strict_images=config.getoption("--otval-strict-images"),
        prepare_contract=config.getoption("--otval-prepare-contract"),
        **{name: config.getoption(option_of(name)) for name in SUBMIT_OPTIONS},
        writer=writer,
    )
    return Settings(run, verdict)


def as_usage_error(error: OtvalUsageError) -> pytest.UsageError:
    """Return our usage error as pytest's, which ends in one line and status 4."""
    return pytest.UsageError(str(error))
