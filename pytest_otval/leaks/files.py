"""What the files of an image give away: tests, solutions, the lines of a gold patch, bytecode of graders, rewards."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.docker import is_answer, is_input
from pytest_otval.checks.docker_files import delivered
from pytest_otval.checks.registry import Place
from pytest_otval.checks.tree import Entry
from pytest_otval.core import Severity
from pytest_otval.images.contents import SYSTEM, Contents
from pytest_otval.leaks.gold import ENOUGH, Gold, Hit

MIN_COPIED = 40
"""Bytes below which two equal files say nothing."""
MAX_COPIES = 20
"""Files of one size in the image that are compared with one of the task."""
MAX_TEXT = 1024**2
"""Bytes of a file that is looked into for gold lines; a longer one is no source that anybody wrote."""
MAX_READ = 64 * 1024**2
"""Bytes of an image that are looked into for them."""
BOILERPLATE = 3
"""As many files with the same lines have them for another reason."""

_COMMON = re.compile(r"(?:__init__\.py|py\.typed|(?:un)?licen[cs]e.*|copying.*|notice.*)", re.IGNORECASE)
"""Names of files that are alike in many places."""
_COLLECTED = re.compile(r"(?:test_.*|.*_test|conftest)\.py")
"""What pytest reads without being told its name."""
_QUIET = re.compile(r"(?:usr/local/lib/|.*/(?:site-packages|dist-packages|node_modules)/)")
"""Packages are looked into only where the patch changes one of their files."""
_BYTECODE = re.compile(r"(?P<folder>.*/)?__pycache__/(?P<name>[^/]+?)\.(?:cpython|pypy)-?\d*[^/]*\.pyc")
_REWARD = re.compile(r"logs/verifier/reward\.(?:txt|json)")


def tests_in(context: CheckContext, contents: Contents) -> Iterator[Place]:
    """Look for files of tests/ by which the work is judged."""
    scripts = [context.test_script(step) for step in context.steps]
    said = "\n".join(source.text for path in scripts if (source := context.source(path)) is not None)
    for entry, path in _copies(context, contents, context.test_files):
        name = posixpath.basename(entry.path)
        named = entry.path in scripts or (name in said and not is_input(path, entry.path))
        if named or _COLLECTED.fullmatch(name):
            yield Place(entry.path, f"the image has it as /{path}")


def solutions_in(context: CheckContext, contents: Contents) -> Iterator[Place]:
    """Look for files of solution/; one that a solution brings without changing it is none."""
    folders = {context.relative(step.solution) for step in context.steps}
    entries = [entry for folder in sorted(folders) for entry in context.tree.under(folder) if entry.kind == "file"]
    copies = list(_copies(context, contents, entries))
    unchanged = {entry.path for entry, path in copies if posixpath.basename(path) == posixpath.basename(entry.path)}
    changes = any(entry.path not in unchanged and not is_answer(entry.path) for entry in entries)
    for entry, path in copies:
        answer = is_answer(entry.path)
        if answer or not (changes and entry.path in unchanged):
            severity = Severity.ERROR if answer else Severity.WARNING
            yield Place(entry.path, f"the image has it as /{path}", severity=severity)


def _copies(
    context: CheckContext, contents: Contents, entries: tuple[Entry, ...] | list[Entry]
) -> Iterator[tuple[Entry, str]]:
    """Yield each file of the task that is in the image, with its first place there.

    What a COPY of the build context brings is left out: the static checks speak of that.
    """
    tree = context.tree.entries
    handed_out = {context.digest(tree[one.path]) for one in delivered(context) if one.path in tree}
    for entry in entries:
        if entry.size < MIN_COPIED or _COMMON.fullmatch(posixpath.basename(entry.path)):
            continue
        places = [(number, path) for number, index in contents.numbered() for path in index.by_size.get(entry.size, ())]
        source = context.source(entry.path) if places else None
        if source is None or not source.whole or context.digest(entry) in handed_out:
            continue
        for number, path in places[:MAX_COPIES]:
            node = contents.shown(number, path)
            if node is not None and contents.read(node, len(source.raw)) == source.raw:
                yield entry, path
                break


@dataclass(frozen=True, slots=True)
class GoldLines:
    """What was found of gold lines in the files of an image."""

    places: tuple[Place, ...]
    patches: frozenset[tuple[str, str]]
    """Patch and path of each gold file that stands in the image as the patch leaves it."""
    read_all: bool


def gold_lines(contents: Contents, gold: Gold) -> GoldLines:
    """Look for the lines that patches of the solution add."""
    found: list[tuple[str, Hit]] = []
    left = MAX_READ
    for number, path, size in texts(contents, gold):
        node = contents.shown(number, path)
        if node is None:
            continue
        left -= size
        if left < 0:
            break
        raw = contents.read(node, MAX_TEXT)
        if b"\0" not in raw[:8192]:
            found += ((path, hit) for hit in gold.hits(path, raw))
    holders: dict[str, set[str]] = defaultdict(set)
    for path, hit in found:
        if not hit.applied:
            holders[hit.run.text].add(path)
    places = [_gold_place(path, hit) for path, hit in found if hit.applied or len(holders[hit.run.text]) < BOILERPLATE]
    whole = frozenset((hit.gold.patch, hit.gold.path) for _, hit in found if hit.applied)
    return GoldLines(tuple(places), whole, left >= 0)


def _gold_place(path: str, hit: Hit) -> Place:
    where = f"/{path}:{hit.line}"
    if hit.applied:
        return Place(hit.gold.patch, f"this hunk is applied in the image, at {where}", hit.run.line)
    severity = Severity.ERROR if hit.share >= ENOUGH else Severity.WARNING
    message = f"the image has these lines, which the patch adds to {hit.gold.path}, at {where}"
    return Place(hit.gold.patch, message, hit.run.line, severity)


def texts(contents: Contents, gold: Gold) -> Iterator[tuple[int, str, int]]:
    """Yield layer, path and size of each file to look into, those that the patches change first."""
    changed, others = [], []
    for number, index in contents.numbered():
        # These are in no index.
        changed += [(number, path, 0) for file in gold.files if (path := file.path.lstrip("/")).startswith(_SYSTEM)]
        for path, (size, _) in index.stamps.items():
            if not 0 < size <= MAX_TEXT:
                continue
            if gold.changes(path):
                changed.append((number, path, size))
            elif not _QUIET.match(path) and "/.git/" not in f"/{path}":
                others.append((number, path, size))
    yield from changed
    yield from others


_SYSTEM = tuple(f"{folder}/" for folder in sorted(SYSTEM))


def stale_bytecode(context: CheckContext, contents: Contents) -> Iterator[Place]:
    """Look for bytecode of Python files of tests/ that are not in the image."""
    names = {posixpath.basename(entry.path): entry.path for entry in context.test_files if entry.path.endswith(".py")}
    for number, index in contents.numbered():
        for path in index.bytecode:
            found = _BYTECODE.fullmatch(path)
            twin = names.get(f"{found['name']}.py") if found is not None else None
            if found is None or twin is None or _COMMON.fullmatch(posixpath.basename(twin)) or _QUIET.match(path):
                continue
            source = f"{found['folder'] or ''}{found['name']}.py"
            if contents.shown(number, path) is not None and not contents.exists(source):
                yield Place(twin, f"the image has bytecode of a file of this name, /{path}, and not its source")


def rewards_there(context: CheckContext, contents: Contents) -> Iterator[Place]:
    """Look for rewards and other files in /logs."""
    about = "environment/Dockerfile" if context.file("environment/Dockerfile") is not None else "task.toml"
    shown = [path for number, index in contents.numbered() for path in index.logs if contents.shown(number, path)]
    rewards = [path for path in shown if _REWARD.fullmatch(path)]
    for path in rewards:
        yield Place(about, f"the image has /{path}")
    if shown and not rewards:
        more = f" and {len(shown) - 1} more files" if len(shown) > 1 else ""
        yield Place(about, f"the image has /{shown[0]}{more} in /logs", severity=Severity.INFO)
