"""From a Dockerfile to the steps of a build. Nothing is run here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.images.bases import Base, Bases
from pytest_otval.images.expand import ExpansionError, expand
from pytest_otval.images.oci import ARCHITECTURE
from pytest_otval.images.planner import StagePlanner, failed
from pytest_otval.images.steps import BuildPlan, base_plan
from pytest_otval.images.support import refuse_unsupported
from pytest_otval.task.context import Context, list_context
from pytest_otval.task.dockerfile import Dockerfile, DockerfileError, Instruction, parse_dockerfile
from pytest_otval.task.reading import NotReadableError

MAX_STAGES = 200
"""Each stage over another has the steps of both."""

_ARCHITECTURES = {"x86_64": "amd64", "x86-64": "amd64", "aarch64": "arm64"}
_PLATFORM = {
    "TARGETPLATFORM": f"linux/{ARCHITECTURE}",
    "TARGETOS": "linux",
    "TARGETOSVERSION": "",
    "TARGETARCH": ARCHITECTURE,
    "TARGETVARIANT": "",
    "BUILDPLATFORM": f"linux/{ARCHITECTURE}",
    "BUILDOS": "linux",
    "BUILDOSVERSION": "",
    "BUILDARCH": ARCHITECTURE,
    "BUILDVARIANT": "",
}


def dockerfile_plan(folder: Path, bases: Bases, all_root: bool) -> BuildPlan:
    """Return the plan of the Dockerfile in a folder, which is also the context.

    Raises Conclusion ``unsupported-instruction``, ``build-failed``, ``base-unavailable``.
    """
    file = f"{folder.name}/Dockerfile"
    try:
        parsed = parse_dockerfile(folder / "Dockerfile")
    except DockerfileError as error:
        raise Conclusion("build-failed", f"{file}:{error.line}: {error.message}") from None
    try:
        context = list_context(folder)
    except (OSError, ValueError, NotReadableError) as error:
        raise Conclusion("build-failed", f"{folder.name}: the build context cannot be read: {error}") from None
    return _Stages(file, parsed, context, bases, all_root).last()


@dataclass(frozen=True, slots=True)
class _Stage:
    start: Instruction
    """Its FROM."""
    instructions: tuple[Instruction, ...]
    """All others."""

    @property
    def name(self) -> str:
        """What ``FROM image AS name`` calls it; names know no case."""
        return self.start.args[2].lower() if len(self.start.args) == 3 else ""


class _Stages:
    """The stages of a Dockerfile. As with BuildKit, one that nothing needs is not looked at."""

    def __init__(self, file: str, parsed: Dockerfile, context: Context, bases: Bases, all_root: bool) -> None:
        self._file = file
        self._escape = parsed.escape
        self._context = context
        self._bases = bases
        self._all_root = all_root
        self._stages = _split(parsed)
        self._arguments = {**_PLATFORM, "TARGETSTAGE": self._stages[-1].name or "default"}
        for instruction in parsed:
            if instruction.kind == "FROM":
                break
            self._argument(instruction)
        self._planners: dict[int, StagePlanner] = {}
        self._origins: dict[int, BuildPlan] = {}

    def last(self) -> BuildPlan:
        """Return the plan of the last stage. Raises Conclusion."""
        if len(self._stages) > MAX_STAGES:
            where = f"{self._file}:{self._stages[MAX_STAGES].start.line}"
            raise Conclusion("unsupported-instruction", f"{where}: more than {MAX_STAGES} stages")
        last = len(self._stages) - 1
        for number in sorted(self._needed(last)):
            self._planners[number] = self._planned(number)
        return self._planners[last].plan(self._all_root)

    def _argument(self, instruction: Instruction) -> None:
        """Add an ARG in front of the first FROM; the parser lets nothing else stand there."""
        for word in instruction.args:
            name, assigned, default = word.partition("=")
            if assigned:
                self._arguments[name] = self._expanded(instruction, default)

    def _expanded(self, instruction: Instruction, word: str) -> str:
        try:
            return expand(word, self._arguments, self._escape)
        except ExpansionError as error:
            raise failed(self._file, instruction, str(error)) from None

    def _needed(self, number: int) -> set[int]:
        """Return the numbers of the stages that one needs, its own included; each needs only those before it."""
        needed, todo = set[int](), [number]
        while todo:
            number = todo.pop()
            if number in needed:
                continue
            needed.add(number)
            stage = self._stages[number]
            before = self._base_stage(number)
            todo += [] if before is None else [before]
            for instruction in stage.instructions:
                origin = self._origin_stage(instruction, number)
                todo += [] if origin is None else [origin]
        return needed

    def _base_stage(self, number: int) -> int | None:
        """Return the number of the stage that FROM names; unlike COPY --from, it takes the name as it is written."""
        name = self._expanded(self._stages[number].start, self._stages[number].start.args[0])
        return self._named(name, number)

    def _origin_stage(self, instruction: Instruction, number: int) -> int | None:
        """Return the number of the stage that a COPY --from in stage ``number`` names; None for an image or no such."""
        name = _origin(instruction)
        if name is None:
            return None
        try:
            plain = expand(name, {}, self._escape) == name
        except ExpansionError:
            plain = False
        if not plain:
            raise failed(self._file, instruction, "--from takes no variables: name a stage in its place")
        if re.fullmatch(r"[+-]?[0-9]+", name):
            found: int | None = int(name) if len(name) < 10 else -1
            if found not in range(len(self._stages)):
                raise failed(self._file, instruction, f"there is no stage {name[:20]}")
        else:
            found = self._named(name.lower(), len(self._stages))
        if found is not None and found >= number:
            words = "the stage needs itself" if found == number else f"stage {name} comes later"
            raise failed(self._file, instruction, words)
        return found

    def _planned(self, number: int) -> StagePlanner:
        """Return the planner of a stage that has all its instructions; those that it needs are planned."""
        stage = self._stages[number]
        for instruction in (stage.start, *stage.instructions):
            refuse_unsupported(instruction, self._file)
        planner = self._started(number, stage.start)
        for instruction in stage.instructions:
            name = _origin(instruction)
            if name is None:
                planner.add(instruction)
                continue
            origin = self._origin_stage(instruction, number)
            planner.copy_from(instruction, self._image(instruction, name) if origin is None else self._files(origin))
        return planner

    def _started(self, number: int, start: Instruction) -> StagePlanner:
        """Return a planner that knows the FROM of its stage alone."""
        before = self._base_stage(number)
        if before is not None:
            return self._planners[before].child()
        name = self._expanded(start, start.args[0])
        if not name:
            raise failed(self._file, start, f"{start.args[0][:200]} is empty: an ARG without a value?")
        self._require_platform(start)
        base = self._base(start, name)
        planner = StagePlanner(self._file, self._escape, self._context, self._arguments, base)
        planner.set_user(start, base.config.user)
        return planner

    def _require_platform(self, start: Instruction) -> None:
        platform = _flag(start, "--platform")
        if platform is None:
            return
        wanted = self._expanded(start, platform)
        if _platform(wanted) != _PLATFORM["TARGETPLATFORM"]:
            where = f"{self._file}:{start.line}"
            here = _PLATFORM["TARGETPLATFORM"]
            raise Conclusion("unsupported-instruction", f"{where}: FROM --platform={wanted[:200]} on {here}")

    def _files(self, number: int) -> BuildPlan:
        """Return the plan of a stage as an origin of COPY --from."""
        if number not in self._origins:
            self._origins[number] = self._planners[number].plan(self._all_root, for_files=True)
        return self._origins[number]

    def _image(self, instruction: Instruction, name: str) -> BuildPlan:
        return base_plan(self._base(instruction, name), self._all_root)

    def _named(self, name: str, before: int) -> int | None:
        """Return the number of the last stage of a name among the first ``before``."""
        numbers = (number for number in reversed(range(before)) if self._stages[number].name == name)
        return next(numbers, None) if name else None

    def _base(self, instruction: Instruction, name: str) -> Base:
        return self._bases.resolve(name, f"{self._file}:{instruction.line}: {instruction.kind}")


def _split(parsed: Dockerfile) -> list[_Stage]:
    found: list[tuple[Instruction, list[Instruction]]] = []
    for instruction in parsed:
        if instruction.kind == "FROM":
            found.append((instruction, []))
        elif found:
            found[-1][1].append(instruction)
    return [_Stage(start, tuple(others)) for start, others in found]


def _origin(instruction: Instruction) -> str | None:
    return (_flag(instruction, "--from") or None) if instruction.kind == "COPY" else None


def _platform(text: str) -> str:
    """Return a platform as the images of this machine's name it: ``linux/amd64`` for ``x86_64``."""
    parts = text.lower().split("/")
    system, architecture = parts[:2] if len(parts) > 1 else ("linux", parts[0])
    architecture = _ARCHITECTURES.get(architecture, architecture)
    variant = "/".join(parts[2:])
    usual = not variant or (architecture, variant) in (("amd64", "v1"), ("arm64", "v8"))
    return f"{system}/{architecture}" + ("" if usual else f"/{variant}")


def _flag(instruction: Instruction, name: str) -> str | None:
    """Return the value of ``--name=value``."""
    values = (flag.partition("=")[2] for flag in instruction.flags if flag.partition("=")[0] == name)
    return next(values, None)
