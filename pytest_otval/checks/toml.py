"""What task.toml says that is valid and can hardly be meant: numbers in another unit, defaults of a template."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.registry import Place, check
from pytest_otval.checks.said import instructions, prose
from pytest_otval.core import LEVELS, Severity
from pytest_otval.task.keep import keep_of
from pytest_otval.task.lines import KeyPath, Lines
from pytest_otval.task.load import TASK_TOML
from pytest_otval.task.model import EnvironmentConfig, StepConfig, TaskConfig


def _place(context: CheckContext, path: KeyPath, message: str, severity: Severity | None = None) -> Place:
    return Place(TASK_TOML, message, Lines(context.task.source).of(path), severity)


@check(
    "toml-name-folder",
    severity=Severity.WARNING,
    family="toml",
    explains="Reports and registries know the task by [task].name, everybody else by its folder: mostly a copied file.",
    fix="give both the same name",
)
def name_folder(context: CheckContext) -> Iterator[Place]:
    """Look for a name that has nothing of the folder's, nor the folder of it."""
    config = context.task.config
    if config is None or config.task is None:
        return
    name, folder = (_plain(text) for text in (config.task.name.partition("/")[2], context.task.name))
    if name not in folder and folder not in name:
        yield _place(context, ("task", "name"), f"the name is {config.task.name}, the folder {context.task.name}")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


_DEFAULT = re.compile(
    r"(?:TODO\b.*|FIXME\b.*|<[^<>]*>|\{{1,2}\s*[A-Za-z_]\w*\s*\}{1,2}"
    r"|your[ _.\-]?(?:full[ _]?)?name|author[ _.\-]?name|first[ _]?name last[ _]?name|jane doe|john doe"
    r"|(?:your[ _.\-]?(?:e?mail|name)|you|author|user|name|e?mail)@(?:example|e?mail|domain|company)\.(?:com|org))",
    re.IGNORECASE,
)
_FILLED = ("author_name", "author_email", "difficulty", "category", "description", "title", "name", "email")


@check(
    "toml-template-default",
    severity=Severity.WARNING,
    family="toml",
    explains="A value of the template that the task was made from was never filled in.",
    fix="write the value, or drop the key",
)
def template_default(context: CheckContext) -> Iterator[Place]:
    """Look for the values of templates in [metadata] and [task]."""
    config = context.task.config
    if config is None:
        return
    texts: dict[KeyPath, Any] = {("metadata", key): config.metadata.get(key) for key in _FILLED}
    if config.task is not None:
        texts["task", "description"] = config.task.description
        for index, author in enumerate(config.task.authors):
            texts["task", "authors", index, "name"] = author.name
            texts["task", "authors", index, "email"] = author.email
    for path, text in texts.items():
        if isinstance(text, str) and len(text) < 200 and _DEFAULT.fullmatch(text.strip()):
            yield _place(context, path, f"{path[-1]} is {text.strip()!r}")


@check(
    "toml-agent-below-verifier",
    severity=Severity.INFO,
    family="toml",
    explains="Judging is mostly quicker than working; limits the other way round are often mixed up.",
    fix="look whether the two limits are swapped",
)
def agent_below_verifier(context: CheckContext) -> Iterator[Place]:
    """Look for a verifier that is given more time than the agent, where both limits are written."""
    config = context.task.config
    if config is None:
        return
    for index, step in enumerate(context.steps):
        written = config.steps[index].verifier if config.steps else config.verifier
        explicit = "timeout_sec" in written.model_fields_set
        if explicit and step.agent_timeout is not None and step.agent_timeout < step.verifier_timeout:
            path: KeyPath = ("steps", index, "verifier", "timeout_sec") if step.name else ("verifier", "timeout_sec")
            message = f"the verifier has {step.verifier_timeout:g} seconds, the agent {step.agent_timeout:g}"
            yield _place(context, path, message)


_LONGEST = 600_000
"""Seconds, about a week: beyond it a limit is in milliseconds."""
_SHORTEST_AGENT = 15
_SHORTEST_BUILD = 15
_SHORTEST_VERIFIER = 3


@check(
    "toml-time-unit",
    severity=Severity.WARNING,
    family="toml",
    explains="All limits are in seconds: one in minutes stops every agent at once, one in milliseconds never does.",
    fix="write the limit in seconds",
)
def time_unit(context: CheckContext) -> Iterator[Place]:
    """Look for limits that look like minutes, hours or milliseconds."""
    for path, seconds, least in _limits(context.task.config):
        if 0 < seconds < least:
            yield _place(context, path, f"{seconds:g} seconds are too short for anything: minutes?")
        elif seconds >= _LONGEST:
            yield _place(context, path, f"{seconds:g} seconds are {seconds / 86400:.0f} days: milliseconds?")


def _limits(config: TaskConfig | None) -> Iterator[tuple[KeyPath, float, int]]:
    if config is None:
        return
    yield ("environment", "build_timeout_sec"), config.environment.build_timeout_sec, _SHORTEST_BUILD
    tables: list[tuple[TaskConfig | StepConfig, KeyPath]] = [(config, ())]
    tables.extend((step, ("steps", index)) for index, step in enumerate(config.steps or ()))
    for table, path in tables:
        if table.agent.timeout_sec is not None:
            yield (*path, "agent", "timeout_sec"), table.agent.timeout_sec, _SHORTEST_AGENT
        yield (*path, "verifier", "timeout_sec"), table.verifier.timeout_sec, _SHORTEST_VERIFIER


@check(
    "toml-time-estimates",
    severity=Severity.WARNING,
    family="toml",
    explains="An expert who needs longer than a beginner is an estimate in another unit, or the two are swapped.",
    fix="write both estimates in minutes",
)
def time_estimates(context: CheckContext) -> Iterator[Place]:
    """Look for estimates of an expert's time above that of a beginner."""
    metadata: Mapping[str, Any] = context.task.config.metadata if context.task.config is not None else {}
    expert, junior = metadata.get("expert_time_estimate_min"), metadata.get("junior_time_estimate_min")
    if isinstance(expert, int | float) and isinstance(junior, int | float) and expert > junior > 0:
        message = f"an expert needs {expert:g} minutes, a beginner {junior:g}"
        yield _place(context, ("metadata", "expert_time_estimate_min"), message)


_SIZES = {"memory_mb": (64, 4_000_000), "storage_mb": (64, 100_000_000), "cpus": (0, 512), "gpus": (0, 64)}
"""What is below is meant in GB, what is above in KB or bytes."""


@check(
    "toml-resource-unit",
    severity=Severity.WARNING,
    family="toml",
    explains="Memory and storage are in MB: a size in GB starts nothing, one in bytes fits on no machine.",
    fix="write memory and storage in MB",
)
def resource_unit(context: CheckContext) -> Iterator[Place]:
    """Look for amounts that no task can mean."""
    for path, table in _environments(context.task.config):
        for key, (least, most) in _SIZES.items():
            amount = getattr(table, key)
            if amount is not None and (0 < amount < least or amount > most):
                yield _place(context, (*path, key), f"{key} = {amount} can hardly be meant")


def _environments(config: TaskConfig | None) -> Iterator[tuple[KeyPath, EnvironmentConfig]]:
    if config is None:
        return
    yield ("environment",), config.environment
    if config.verifier.environment is not None:
        yield ("verifier", "environment"), config.verifier.environment
    for index, step in enumerate(config.steps or ()):
        if step.verifier.environment is not None:
            yield ("steps", index, "verifier", "environment"), step.verifier.environment


@check(
    "toml-resources-absent",
    severity=Severity.INFO,
    family="toml",
    explains="Without cpus and memory_mb whoever runs the task decides, so results differ from place to place.",
    fix="write cpus and memory_mb under [environment]",
)
def resources_absent(context: CheckContext) -> Iterator[Place]:
    """Look for environments that leave both processors and memory open."""
    config = context.task.config
    if config is not None and config.environment.cpus is None and config.environment.memory_mb is None:
        yield _place(context, ("environment",), "neither cpus nor memory_mb is given")


_GPU = re.compile(
    r"any|(?:nvidia-)?(?:tesla-)?(?:t4|l4|l40s?|a10g?|p100|v100|a100(?:-(?:40|80)gb)?|h100(?:-80gb|-mega(?:-80gb)?)?"
    r"|h200(?:-141gb)?|b200|gb200|rtx-pro-6000|rtx-?[345]090)!?"
)
"""Names that at least one of Harbor 0.26's environments maps to a GPU, in lower case."""


@check(
    "toml-gpu-types",
    severity=Severity.WARNING,
    family="toml",
    explains="A type that no provider maps to a GPU is refused, and types without a number of GPUs are ignored.",
    fix="write `gpus`, and types such as T4, L4, A100, A100-80GB, H100, H200",
)
def gpu_types(context: CheckContext) -> Iterator[Place]:
    """Look for unknown GPU types, and for types where no GPU is asked for."""
    for path, table in _environments(context.task.config):
        types = table.gpu_types or []
        if types and not table.gpus:
            yield _place(context, (*path, "gpu_types"), "no GPU is asked for, so the types are ignored")
        elif types and not any(_GPU.fullmatch(name.strip().lower()) for name in types):
            yield _place(context, (*path, "gpu_types"), f"no provider knows {', '.join(types)[:100]}")


_PROMISED = re.compile(
    r"\byou (?:do )?have (?:full |unrestricted )?(?:internet|network) access\b"
    r"|\b(?:internet|network) access is (?:available|allowed|enabled)\b",
    re.IGNORECASE,
)


@check(
    "toml-network-promised",
    severity=Severity.WARNING,
    family="toml",
    explains="The instruction promises a network that the agent does not get.",
    fix="give the agent the network, or take the promise out of the instruction",
)
def network_promised(context: CheckContext) -> Iterator[Place]:
    """Look for the promise of a network where the agent has none."""
    if any(step.agent_network != "no-network" for step in context.steps):
        return
    for source in instructions(context):
        found = _PROMISED.search(prose(source.text))
        if found is not None:
            line = source.text.count("\n", 0, found.start()) + 1
            yield Place(source.path, f"it says {found[0]!r}, task.toml gives the agent no network", line)


_CHOICES: Mapping[str, tuple[str, ...]] = {"isolation": LEVELS, "process_scope": ("phase", "trial")}


@check(
    "toml-otval",
    severity=Severity.ERROR,
    family="toml",
    explains="What [metadata.otval] says decides how the task is graded: a wrong value there is no answer at all.",
    fix="write one of the values that docs/isolation.md has",
)
def otval_values(context: CheckContext) -> Iterator[Place]:
    """Look for levels, scopes and entries of ``keep`` that there are not."""
    metadata: Mapping[str, Any] = context.task.config.metadata if context.task.config is not None else {}
    ours = metadata.get("otval", {})
    if not isinstance(ours, Mapping):
        yield _place(context, ("metadata", "otval"), "[metadata.otval] is no table")
        return
    for key, choices in _CHOICES.items():
        if key in ours and ours[key] not in choices:
            yield _place(context, ("metadata", "otval", key), f"{key} = {ours[key]!r} is none of {', '.join(choices)}")
    try:
        keep_of(metadata)
    except ValueError as error:
        yield _place(context, ("metadata", "otval", "keep"), f"keep: {error}")
