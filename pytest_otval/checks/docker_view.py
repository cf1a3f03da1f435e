"""Dockerfiles of a task as checks see them: instructions by stage, and what each RUN does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.docker_runs import UNKNOWN, Command, Run, join, read_run
from pytest_otval.checks.files import DEFINITIONS
from pytest_otval.core import Severity
from pytest_otval.task.context import Context, list_context
from pytest_otval.task.dockerfile import Dockerfile, DockerfileError, Instruction, parse_dockerfile
from pytest_otval.task.reading import NotReadableError

_AT_ROOT = re.compile(
    r"(?:(?:docker\.io|public\.ecr\.aws/docker|mirror\.gcr\.io)/)?(?:library/)?"
    r"(?:debian|ubuntu|alpine|python|node|rust|gcc|ruby|perl|buildpack-deps|fedora|eclipse-temurin|scratch)(?:[:@].*)?"
)
"""Images whose working directory is the root."""
_MAX_STAGES = 100
_MAX_INSTRUCTIONS = 1000
"""A Dockerfile with more is none that anybody wrote, and is not looked into."""
_FROM_FLAG = re.compile(r"\bfrom=([^,\s]+)")


@dataclass(frozen=True, slots=True)
class Definition:
    """A folder with a Dockerfile."""

    folder: str
    used: bool
    """False where a docker_image or a compose file decides what is built, so that faults are no errors."""

    @property
    def path(self) -> str:
        """The Dockerfile, relative to the task folder."""
        return f"{self.folder}/Dockerfile"

    @property
    def is_agents(self) -> bool:
        """Whether the agent works in this image."""
        return self.folder == "environment"

    @property
    def worst(self) -> Severity:
        """How bad what surely ends the build is."""
        return Severity.ERROR if self.used else Severity.WARNING


@dataclass(frozen=True)
class Image:
    """One Dockerfile that parses."""

    definition: Definition
    stages: tuple[tuple[Instruction, ...], ...]
    """Each starts with its FROM; what stands in front of the first is in ``arguments``."""
    arguments: dict[str, str]
    """Defaults of ARG in front of the first FROM."""
    build: Context | None
    """None where .dockerignore cannot be read."""
    runs: dict[int, Run]
    """By the line of the instruction."""
    folders: dict[int, str]
    """The working directory behind each instruction, by its line; a NUL character for what is not known."""

    @property
    def path(self) -> str:
        """The Dockerfile, relative to the task folder."""
        return self.definition.path

    def base(self, stage: int) -> str:
        """Return what a stage stands on, with defaults of ARG filled in; a NUL character for what is not known."""
        return expand(self.stages[stage][0].args[0], self.arguments)

    def names(self, stage: int) -> str:
        """Return the name of a stage, or an empty text."""
        args = self.stages[stage][0].args
        return args[2].lower() if len(args) == 3 else ""

    def parent(self, stage: int) -> int | None:
        """Return the earlier stage that a stage stands on, if it does."""
        base = self.base(stage).lower()
        return next((index for index in range(stage - 1, -1, -1) if self.names(index) == base), None)

    @cached_property
    def chain(self) -> tuple[int, ...]:
        """The stages that become the image, the lowest first; what others make reaches it by COPY --from alone."""
        found = [len(self.stages) - 1]
        while (below := self.parent(found[0])) is not None:
            found.insert(0, below)
        return tuple(found)

    @cached_property
    def needed(self) -> frozenset[int]:
        """The stages that a build runs: those that become the image, and those that they copy from or mount."""
        names = {name: index for index in range(len(self.stages)) for name in (self.names(index), str(index)) if name}
        pending, found = [*self.chain], set[int]()
        while pending:
            stage = pending.pop()
            if stage in found:
                continue
            found.add(stage)
            flags = (flag for instruction in self.stages[stage] for flag in instruction.flags)
            wanted = {match.lower() for flag in flags for match in _FROM_FLAG.findall(flag)}
            below = self.parent(stage)
            pending += [names[name] for name in wanted if name in names] + ([] if below is None else [below])
        return frozenset(found)

    @property
    def instructions(self) -> Iterator[tuple[int, Instruction]]:
        """Every instruction with its stage."""
        return ((stage, one) for stage, body in enumerate(self.stages) for one in body)

    @property
    def final(self) -> Iterator[Instruction]:
        """The instructions whose files the image has, in the order they run."""
        for stage in self.chain:
            yield from self.stages[stage]

    @property
    def commands(self) -> Iterator[Command]:
        """Every command of every RUN."""
        for run in self.runs.values():
            yield from run.commands


def definitions(context: CheckContext) -> Iterator[Definition]:
    """Yield the folders of a task with a Dockerfile: environment/, and those of separate verifiers."""
    config = context.task.config
    if context.tree.entries.get("environment/Dockerfile") is not None:
        composed = any(context.file(f"environment/{name}") for name in DEFINITIONS[1:])
        yield Definition("environment", not composed and config is not None and not config.environment.docker_image)
    verifiers = [step.verifier_image for step in context.steps if step.verifier_image is not None]
    built = {context.relative(image.context): image.docker_image is None for image in verifiers}
    for folder, used in built.items():
        composed = any(context.file(f"{folder}/{name}") for name in DEFINITIONS[1:])
        if folder != "environment" and context.tree.entries.get(f"{folder}/Dockerfile") is not None:
            yield Definition(folder, used and not composed)


@lru_cache(maxsize=2)
def parsed(context: CheckContext) -> tuple[tuple[Definition, Dockerfile | DockerfileError], ...]:
    """Return each Dockerfile of a task, or why the builder would refuse it."""
    found: list[tuple[Definition, Dockerfile | DockerfileError]] = []
    for definition in definitions(context):
        try:
            found.append((definition, parse_dockerfile(context.task.path / definition.path)))
        except DockerfileError as error:
            found.append((definition, error))
    return tuple(found)


@lru_cache(maxsize=2)
def images(context: CheckContext) -> tuple[Image, ...]:
    """Return the Dockerfiles of a task that parse, docker-parse speaks of the others; none without end."""
    found = [(definition, file) for definition, file in parsed(context) if isinstance(file, Dockerfile)]
    return tuple(_image(context, definition, file) for definition, file in found if _is_readable(file))


def _is_readable(file: Dockerfile) -> bool:
    stages = sum(instruction.kind == "FROM" for instruction in file)
    return stages <= _MAX_STAGES and len(file.instructions) <= _MAX_INSTRUCTIONS


def agent_image(context: CheckContext) -> Image | None:
    """Return the Dockerfile of the image that the agent works in, if it parses."""
    return next((image for image in images(context) if image.definition.is_agents), None)


def expand(text: str, values: dict[str, str]) -> str:
    """Return a text with ``$NAME`` and ``${NAME:-default}`` filled in; a NUL character for what is not known."""

    def value(match: re.Match[str]) -> str:
        name, default = match[1] or match[2], match[3]
        return values.get(name) or (UNKNOWN if default is None else default)

    filled = re.sub(r"\$(?:(\w+)|\{(\w+)(?::?-([^}$]*))?\})", value, text.strip("\"'"))
    return UNKNOWN if "$" in filled else filled


def _image(context: CheckContext, definition: Definition, dockerfile: Dockerfile) -> Image:
    try:
        build = list_context(context.task.path / definition.folder)
    except (ValueError, OSError, NotReadableError):
        build = None
    source = context.source(definition.path)
    lines = source.text.split("\n") if source is not None and source.whole else []
    starts = [index for index, one in enumerate(dockerfile.instructions) if one.kind == "FROM"]
    stages = [dockerfile.instructions[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]
    image = Image(definition, tuple(stages), _arguments(dockerfile, starts[0]), build, {}, {})
    folder = "/"
    for stage, instruction in image.instructions:
        if instruction.kind == "FROM":
            below = image.parent(stage)
            base = "/" if _AT_ROOT.fullmatch(image.base(stage)) else UNKNOWN
            folder = base if below is None else image.folders[image.stages[below][-1].line]
        elif instruction.kind == "WORKDIR":
            folder = join(folder, expand(instruction.args[0], {}))
        elif instruction.kind == "RUN" and instruction.shell_form:
            image.runs[instruction.line] = read_run(instruction, lines, folder, dockerfile.escape)
        image.folders[instruction.line] = folder
    return image


def _arguments(dockerfile: Dockerfile, end: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for instruction in dockerfile.instructions[:end]:
        for word in instruction.args:
            name, sign, value = word.partition("=")
            if sign:
                found[name] = expand(value, found)
    return found
