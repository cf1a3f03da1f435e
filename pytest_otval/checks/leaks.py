"""Answers in the agent's reach: patches that undo the task, encoded solutions, answer files, bytecode, rewards, keys.

A file that is byte for byte one of tests/ or solution/ is a finding of docker-tests-copied or docker-solution-copied.
"""

from __future__ import annotations

import base64
import posixpath
import re
from collections import Counter
from collections.abc import Iterator

from pytest_otval.checks.context import CheckContext, Source
from pytest_otval.checks.docker_files import Delivered, delivered, names_answer
from pytest_otval.checks.docker_view import Image, agent_image, images
from pytest_otval.checks.files import DEFINITIONS
from pytest_otval.checks.registry import Place, check
from pytest_otval.checks.secrets import find_secret
from pytest_otval.core import Severity

_PATCHES = (".patch", ".diff")
_MIN_CHANGE = 20
"""Characters of change below which two patches are alike by chance."""
_UNDONE = 0.95
"""Share of a fix's lines that a patch must hold in reverse."""
_Change = tuple[Counter[str], Counter[str]]
"""Lines that a patch removes, and lines that it adds."""
_MIN_ENCODED = 60
"""Bytes of a solution that are looked for in base64; shorter ones are a shebang and a line."""
_UNBROKEN = 40
_MAX_SEARCHED = 256 * 1024
_BYTECODE = re.compile(r"(?:(?P<folder>.*)/)?__pycache__/(?P<name>[^/]+?)\.(?:cpython|pypy)-?\d*[^/]*\.pyc$")


def _image(context: CheckContext) -> Image | None:
    """Return the agent's image where the task builds it from its own Dockerfile."""
    image = agent_image(context)
    return image if image is not None and image.definition.used else None


def _texts(context: CheckContext, limit: int) -> Iterator[tuple[Delivered, Source]]:
    """Yield the text files that the agent's image gets."""
    for one in delivered(context):
        entry = context.tree.entries.get(one.path)
        if entry is not None and entry.kind == "file" and 0 < entry.size <= limit:
            source = context.source(one.path)
            if source is not None and not source.is_binary:
                yield one, source


@check(
    "leaks-reverse-patch",
    severity=Severity.ERROR,
    family="leaks",
    explains="The patch that broke the code stays in the image: applied in reverse (patch -R) it is the solution.",
    fix="remove it in the RUN that applies it: patch -p1 < /tmp/bug.patch && rm /tmp/bug.patch",
)
def reverse_patch(context: CheckContext) -> Iterator[Place]:
    """Look for patches that stay in the agent's image and undo all that a patch of the solution does."""
    shipped = [one for one in delivered(context) if one.path.endswith(_PATCHES)]
    if not shipped or _image(context) is None:
        return
    fixes = [(path, change) for path in _solution_patches(context) if (change := _change(context, path)) is not None]
    for one in shipped:
        broken = _change(context, one.path)
        for path, fix in fixes if broken is not None else ():
            if broken is not None and one.path != path and _undoes(broken, fix):
                yield Place(one.path, f"it stays at {_where(one)}, and undone it is {path}")
                break


def _undoes(broken: _Change, fix: _Change) -> bool:
    """Whether a fix takes back what another patch did; diff may pair moved lines differently in one direction."""
    taken_back = (fix[0] & broken[1]).total() + (fix[1] & broken[0]).total()
    return taken_back >= _UNDONE * (fix[0].total() + fix[1].total())


def _where(one: Delivered) -> str:
    return one.place.replace("\0", "a place only the build knows")


def _solution_patches(context: CheckContext) -> Iterator[str]:
    for folder in sorted({context.relative(step.solution) for step in context.steps}):
        yield from (e.path for e in context.tree.under(folder) if e.kind == "file" and e.path.endswith(_PATCHES))


def _change(context: CheckContext, path: str) -> _Change | None:
    """Return the lines that a patch removes and those it adds, or None where it changes next to nothing."""
    source = context.source(path)
    if source is None or not source.whole:
        return None
    removed, added = Counter[str](), Counter[str]()
    for line in source.text.split("\n"):
        if line.startswith(("--- ", "+++ ")):
            continue
        if line[:1] == "-":
            removed[line[1:].strip()] += 1
        elif line[:1] == "+":
            added[line[1:].strip()] += 1
    enough = sum(len(text) for text in (*removed, *added)) >= _MIN_CHANGE
    return (removed, added) if enough else None


@check(
    "leaks-encoded",
    severity=Severity.ERROR,
    family="leaks",
    explains="The agent can decode what its image holds in base64, and this is the reference solution or its grader.",
    fix="take it out of the Dockerfile and of environment/; the harness brings tests/ and solution/ when it needs them",
)
def encoded(context: CheckContext) -> Iterator[Place]:
    """Look for files of solution/ and for test scripts that the agent's image gets in base64."""
    image = _image(context)
    wanted = dict(_encoded_answers(context)) if image is not None else {}
    if image is None or not wanted:
        return
    places = [(image.path, context.source(image.path))]
    places += [(one.path, source) for one, source in _texts(context, _MAX_SEARCHED)]
    for path, source in places:
        if source is None:
            continue
        for code, answer in wanted.items():
            # Its start stands unbroken, however the rest is wrapped.
            if code[:_UNBROKEN] in source.raw and code in re.sub(rb"[\s\\]+", b"", source.raw):
                yield Place(path, f"holds {answer} in base64", _line_of(source, code))


def _encoded_answers(context: CheckContext) -> Iterator[tuple[bytes, str]]:
    folders = sorted({context.relative(step.solution) for step in context.steps})
    paths = {entry.path for folder in folders for entry in context.tree.under(folder) if entry.kind == "file"}
    paths |= {script.path for script in context.scripts() if script.role == "test"}
    for path in sorted(paths):
        entry = context.tree.entries.get(path)
        if entry is None or not _MIN_ENCODED <= entry.size <= _MAX_SEARCHED // 2:
            continue
        source = context.source(path)
        if source is not None:
            # The end depends on padding and on a last line break.
            yield base64.b64encode(source.raw)[: len(source.raw) // 3 * 4 - 4], path


def _line_of(source: Source, code: bytes) -> int | None:
    position = source.raw.find(code[:_UNBROKEN])
    return None if position < 0 else source.raw.count(b"\n", 0, position) + 1


@check(
    "leaks-answer-file",
    severity=Severity.INFO,
    family="leaks",
    explains="By its name the file holds what the agent is to find out, and the instruction does not speak of it.",
    fix="keep it in tests/, or say in the instruction what it is for",
)
def answer_file(context: CheckContext) -> Iterator[Place]:
    """Look for copied files with names of answers that no instruction mentions."""
    found = [one for one in delivered(context) if names_answer(one.path)]
    if not found:
        return
    sources = [context.source(context.relative(step.instruction)) for step in context.steps]
    said = "\n".join(source.text.lower() for source in sources if source is not None)
    for one in found:
        name = posixpath.basename(one.path).lower()
        words = {name, posixpath.splitext(name)[0], posixpath.basename(posixpath.dirname(one.place)).lower() or name}
        if not any(word in said for word in words):
            yield Place(one.path, f"the agent's image gets it at {_where(one)}")


@check(
    "leaks-bytecode",
    severity=Severity.WARNING,
    family="leaks",
    explains="Bytecode can be read back into source, and this one's source is not there: a removed grader or solution.",
    fix="delete __pycache__ folders, and list them in environment/.dockerignore",
)
def bytecode(context: CheckContext) -> Iterator[Place]:
    """Look for copied .pyc files without their source beside them, which another folder of the task may hold."""
    for one in delivered(context):
        found = _BYTECODE.fullmatch(one.path)
        if found is None:
            continue
        folder, name = found["folder"] or "", f"{found['name']}.py"
        if context.tree.entries.get(f"{folder}/{name}") is not None:
            continue
        twins = [path for path in context.tree.entries if posixpath.basename(path) == name]
        kept = next((path for path in twins if not path.startswith("environment/")), "")
        yield Place(one.path, f"bytecode of {kept or name}, whose source the image does not get")


@check(
    "leaks-reward-shipped",
    severity=Severity.WARNING,
    family="leaks",
    explains="Where the verifier ends early, a reward that was there before may be taken for its answer.",
    fix="let nothing but the test script write the reward",
)
def reward_shipped(context: CheckContext) -> Iterator[Place]:
    """Look for reward files that the Dockerfile copies or writes."""
    image = agent_image(context)
    if image is None:
        return
    for one in delivered(context):
        if re.search(r"/verifier/reward\.(?:txt|json)$", one.place):
            yield Place(one.path, f"the image gets it as {one.place}")
    final = {instruction.line for instruction in image.final}
    for line, run in image.runs.items():
        found = re.search(r"(?:>|\btee|\btouch)\s*\"?/logs/verifier/reward\.(?:txt|json)", run.text)
        if found is not None and line in final:
            yield Place(image.path, "RUN writes the reward", run.first_line + run.text.count("\n", 0, found.start()))


@check(
    "leaks-secret",
    severity=Severity.WARNING,
    family="leaks",
    explains="Whoever gets the task or its image gets the key with it; a key in use must be revoked.",
    fix="pass it by [environment.env] as ${NAME}, or make plain that it is a dummy",
)
def secret(context: CheckContext) -> Iterator[Place]:
    """Look for keys of well-known services in task.toml, Dockerfiles, compose files and scripts.

    Files that the agent works on hold invented keys as often as not, and nothing tells them from real ones.
    """
    paths = ["task.toml", *(f"environment/{name}" for name in DEFINITIONS)]
    paths += [image.path for image in images(context)] + [script.path for script in context.scripts()]
    for path in dict.fromkeys(paths):
        source = context.source(path)
        found = find_secret(source.raw) if source is not None else None
        if source is not None and found is not None:
            kind, position = found
            yield Place(path, f"looks like {kind}", source.raw.count(b"\n", 0, position) + 1)
