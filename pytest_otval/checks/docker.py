"""Dockerfiles: what the builder refuses, and what should not be in the agent's image."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.docker_files import delivered, local_sources, names_answer
from pytest_otval.checks.docker_view import Definition, Image, agent_image, images, parsed
from pytest_otval.checks.registry import Place, check
from pytest_otval.core import Severity
from pytest_otval.task.context import Context, has_wildcard, list_context
from pytest_otval.task.dockerfile import DockerfileError
from pytest_otval.task.reading import NotReadableError

_MIN_COPIED = 64
"""Bytes below which two equal files say nothing: empty __init__.py, one-line configurations."""
_ANSWERS = (".patch", ".diff")
_PROGRAM = re.compile(
    r".*\.(?:py|(?:ba)?sh|[mc]?[jt]sx?|go|rs|java|kts?|scala|clj|c|h|cc|[ch]pp|cxx|cs|fs|rb|php|p[lm]|lua|exs?|erl|hs"
    r"|mli?|swift|r|jl|sql|bats|feature|robot)",
    re.IGNORECASE,
)


@check(
    "docker-parse",
    severity=Severity.ERROR,
    family="docker",
    explains="The builder refuses the Dockerfile before it runs anything.",
    fix="correct the instruction",
)
def parse(context: CheckContext) -> Iterator[Place]:
    """Look for Dockerfiles that cannot be parsed, or that have no FROM."""
    for definition, found in parsed(context):
        if isinstance(found, DockerfileError):
            yield Place(definition.path, found.message, found.line, definition.worst)


@check(
    "docker-copy-missing",
    severity=Severity.ERROR,
    family="docker",
    explains="COPY and ADD of a file that is not in the build context end the build.",
    fix="add the file below the Dockerfile's folder, or take it out of .dockerignore",
)
def copy_missing(context: CheckContext) -> Iterator[Place]:
    """Look for literal COPY and ADD sources that are not in the build context."""
    for image in images(context):
        definition = image.definition
        if image.build is None:
            yield from _unlisted(context, definition)
            continue
        found = list(_not_in_context(context, image, image.build))
        # Of a Dockerfile that nothing builds, whose context may be another folder, one says enough.
        yield from found if definition.used else found[:1]


def _not_in_context(context: CheckContext, image: Image, build: Context) -> Iterator[Place]:
    definition, needed = image.definition, image.needed
    for stage, instruction in image.instructions:
        for source in local_sources(instruction):
            if not has_wildcard(source) and build.find(source) is None:
                there = context.tree.resolve(f"{definition.folder}/{source}") is not None
                why = "which .dockerignore leaves out" if there else "which is not there"
                severity = definition.worst if stage in needed else Severity.WARNING
                yield Place(definition.path, f"{instruction.kind} of {source}, {why}", instruction.line, severity)


def _unlisted(context: CheckContext, definition: Definition) -> Iterator[Place]:
    try:
        list_context(context.task.path / definition.folder)
    except ValueError as error:
        yield Place(f"{definition.folder}/.dockerignore", str(error), fix="correct the pattern")
    except (OSError, NotReadableError):
        return  # entries-unreadable says so


@check(
    "docker-solution-copied",
    severity=Severity.ERROR,
    family="docker",
    explains="The agent can read the reference solution in its image.",
    fix="take the file out of environment/, or out of the COPY",
)
def solution_copied(context: CheckContext) -> Iterator[Place]:
    """Look for the reference solution among the files that the agent's image gets."""
    folders = {context.relative(step.solution) for step in context.steps}
    copies = list(_copies(context, folders))
    # A solution that brings a whole source tree has files in it that it leaves as they are.
    unchanged = {twin for path, twin in copies if posixpath.basename(path) == posixpath.basename(twin)}
    changes = any(
        entry.kind == "file" and entry.path not in unchanged and not is_answer(entry.path)
        for folder in folders
        for entry in context.tree.under(folder)
    )
    for path, twin in copies:
        answer = is_answer(twin)
        if twin in unchanged and changes and not answer:
            continue
        message = f"the agent's image gets the content of {twin}"
        yield Place(path, message, severity=Severity.ERROR if answer else Severity.WARNING)


def is_answer(path: str) -> bool:
    """Whether a file of solution/ is the solution itself, not what it works with."""
    return posixpath.basename(path) == "solve.sh" or path.endswith(_ANSWERS)


@check(
    "docker-tests-copied",
    severity=Severity.WARNING,
    family="docker",
    explains="The agent can read, in its image, files that its work is judged by.",
    fix="take the file out of environment/, unless the agent is meant to see these tests",
)
def tests_copied(context: CheckContext) -> Iterator[Place]:
    """Look for files of tests/ among the files that the agent's image gets."""
    folders = {context.relative(step.tests) for step in context.steps}
    scripts = [context.test_script(step) for step in context.steps]
    sources = [source for path in scripts if (source := context.source(path)) is not None]
    for path, twin in _copies(context, folders):
        # What no test script names is input: the verifier compares with it, or puts it back.
        named = any(posixpath.basename(twin) in source.text for source in sources)
        if twin in scripts or (named and not is_input(path, twin)):
            yield Place(path, f"the agent's image gets the content of {twin}")


def is_input(path: str, twin: str) -> bool:
    """Whether agent and verifier have the same data under the same name, and it is not called an answer."""
    same = posixpath.basename(path) == posixpath.basename(twin)
    return same and not names_answer(twin) and not _PROGRAM.fullmatch(twin)


def _copies(context: CheckContext, folders: set[str]) -> Iterator[tuple[str, str]]:
    """Yield each file that the agent's image gets whose content is that of a file in ``folders``, with that file."""
    image = agent_image(context)
    if image is None or not image.definition.used:
        return
    entries = context.tree.entries
    shipped = [entries[one.path] for one in delivered(context) if one.path in entries]
    # Only files of one size can be equal: most need not be read.
    sizes = {entry.size for entry in shipped}
    twins: dict[str, str] = {}
    for folder in sorted(folders):
        for entry in context.tree.under(folder):
            alike = entry.kind == "file" and entry.size >= _MIN_COPIED and entry.size in sizes
            if alike and (digest := context.digest(entry)):
                twins.setdefault(digest, entry.path)
    sizes = {entries[path].size for path in twins.values()}
    for entry in shipped:
        twin = twins.get(context.digest(entry) or "") if entry.kind == "file" and entry.size in sizes else None
        if twin is not None:
            yield entry.path, twin
