"""Repositories that a Dockerfile clones: the commit that is checked out, and the later ones that stay in reach."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.docker_files import copied
from pytest_otval.checks.docker_runs import UNKNOWN, Command, join, word_set
from pytest_otval.checks.docker_view import Image, agent_image, images
from pytest_otval.checks.registry import Place, check
from pytest_otval.core import Severity

_REMOTE = re.compile(r"(?:https?|git|ssh)://|git@")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_VERSION = re.compile(r"(?:refs/)?(?:tags/)?\D{0,40}\d+(?:[._-][A-Za-z0-9]+)*")
_MAX_CLONES = 50
_BRANCHES = word_set("main master develop dev trunk stable latest nightly next head default edge")
_VALUE_OPTIONS = word_set(
    "-b --branch --depth -o --origin -c --config -j --jobs --shallow-since --shallow-exclude --reference --filter"
    " --revision --separate-git-dir --template --server-option -u --upload-pack --recurse-submodules"
)
_PRUNES = (
    ("gc",),
    ("reflog", "expire"),
    ("update-ref", "-d"),
    ("checkout", "--orphan"),
    ("filter-branch",),
    ("prune",),
)
_GIT_FOLDER = re.compile(r"(?:^|/)\.git(?:/\*?)?$")


@dataclass(frozen=True, slots=True)
class Clone:
    """One ``git clone`` of another machine's repository."""

    line: int
    url: str
    place: str
    """Absolute; a NUL character where it is not known."""
    branch: str
    """Of --branch or --revision; a branch, a tag or a commit."""
    shallow: bool
    single_branch: bool
    later: tuple[Command, ...]
    """What runs after it, in later instructions too."""


def clones(image: Image, stages: Sequence[int]) -> Iterator[Clone]:
    """Yield what the RUN instructions of some stages clone."""
    commands = [
        command
        for stage in stages
        for instruction in image.stages[stage]
        if (run := image.runs.get(instruction.line)) is not None
        for command in run.commands
    ]
    places = [index for index, command in enumerate(commands) if command.name == "git" and "clone" in command.words]
    for index in places[:_MAX_CLONES]:
        found = _clone(commands[index], tuple(commands[index + 1 :]))
        if found is not None:
            yield found


def _clone(command: Command, later: tuple[Command, ...]) -> Clone | None:
    verb, words, folder = _git(command)
    if verb != "clone":
        return None
    options: dict[str, str] = {}
    plain: list[str] = []
    pending = ""
    for word in words:
        if pending:
            options[pending], pending = word, ""
        elif word.startswith("-"):
            name, sign, value = word.partition("=")
            options[name] = value
            pending = name if not sign and name in _VALUE_OPTIONS and name != "--recurse-submodules" else ""
        else:
            plain.append(word)
    if not plain or not _REMOTE.match(plain[0]):
        return None
    target = plain[1] if len(plain) > 1 else posixpath.basename(plain[0].rstrip("/")).removesuffix(".git")
    branch = options.get("-b") or options.get("--branch") or options.get("--revision") or ""
    single = "--single-branch" in options or "--revision" in options
    return Clone(command.line, plain[0], join(folder, target), branch, "--depth" in options, single, later)


def _git(command: Command) -> tuple[str, list[str], str]:
    """Return a git command's verb, its arguments, and the folder it works in."""
    words, folder = list(command.words), command.folder
    if command.name == "xargs" and "git" in words:
        words = [*words[words.index("git") :], UNKNOWN]
    elif command.name != "git":
        return "", [], folder
    words = words[1:]
    while words and words[0].startswith("-"):
        if words[0] == "-C" and len(words) > 1:
            folder = join(folder, words[1])
        words = words[2:] if words[0] in ("-C", "-c", "--git-dir", "--work-tree") else words[1:]
    return (words[0], words[1:], folder) if words else ("", [], folder)


def _is_fixed(revision: str) -> bool:
    """Whether a name is a commit or a version, or is filled in at build time."""
    name = revision.removeprefix("origin/")
    return UNKNOWN in name or bool(_COMMIT.fullmatch(name) or (_VERSION.fullmatch(name) and name not in _BRANCHES))


def _checkout(command: Command) -> str:
    """Return the commit, version or FETCH_HEAD that a command checks out; an empty text for branches and files."""
    verb, words, _ = _git(command)
    if verb not in (
        "checkout",
        "reset",
        "switch",
        "fetch",
        "worktree",
        "submodule",
        "merge",
        "cherry-pick",
        "read-tree",
    ):
        return ""
    plain = [word for word in words if not word.startswith("-")]
    return next((word for word in plain if word == "FETCH_HEAD" or _is_fixed(word)), "")


@check(
    "docker-clone-moving",
    severity=Severity.WARNING,
    family="docker",
    explains="The branch goes on: another day's build has other code than the task was made for.",
    fix="check out a commit after the clone: git checkout COMMIT",
)
def clone_moving(context: CheckContext) -> Iterator[Place]:
    """Look for clones of a branch without a commit or version that is checked out afterwards."""
    for image in images(context):
        for clone in clones(image, range(len(image.stages))):
            branch = clone.branch
            if (branch and (_is_fixed(branch) or branch.lower() not in _BRANCHES)) or UNKNOWN in clone.url:
                continue
            if not any(_checkout(command) for command in clone.later):
                yield Place(image.path, f"clones {branch or 'the default branch'} of {_short(clone.url)}", clone.line)


def _short(url: str) -> str:
    return re.sub(r"^\w+://(?:[^/@]*@)?(?:www\.)?", "", url).removesuffix(".git")[:80]


@check(
    "docker-git-history",
    severity=Severity.WARNING,
    family="docker",
    explains="The repository holds later commits than the one checked out, perhaps the fix that is asked for.",
    fix="rm -rf .git; or drop remote, tags and reflog and run git gc --prune=now; or fetch one commit alone",
)
def git_history(context: CheckContext) -> Iterator[Place]:
    """Look for clones in the agent's folder that go back to an earlier commit and keep the later ones."""
    image = agent_image(context)
    if image is None:
        return
    workdir = image.folders[image.stages[-1][-1].line]
    for clone in clones(image, image.chain):
        if clone.shallow or (clone.single_branch and _is_fixed(clone.branch)) or UNKNOWN in clone.place + workdir:
            continue
        near = f"{workdir}/".startswith(f"{clone.place}/") or f"{clone.place}/".startswith(f"{workdir}/")
        back = next((name for one in clone.later if (name := _goes_back(one, clone))), "")
        if near and back and workdir != "/" and not any(_forgets(one, clone) for one in clone.later):
            message = (
                f"{clone.place} keeps the commits of {_short(clone.url)} after {back.replace(UNKNOWN, '...')[:40]}"
            )
            yield Place(image.path, message, clone.line)


def _goes_back(command: Command, clone: Clone) -> str:
    verb, _, folder = _git(command)
    return _checkout(command) if verb in ("checkout", "reset", "switch") and folder == clone.place else ""


def _forgets(command: Command, clone: Clone) -> bool:
    """Whether a command removes the history, or the clone with it."""
    if command.name in ("rm", "find", "mv", "rsync", "cp"):
        places = [join(command.folder, word).rstrip("/") for word in command.words[1:] if not word.startswith("-")]
        if any(_GIT_FOLDER.search(word) or word == ".git" for word in command.words[1:]):
            return True
        return command.name in ("rm", "mv") and any(f"{clone.place}/".startswith(f"{place}/") for place in places)
    verb, words, _ = _git(command)
    return any((verb, *words)[: len(prune)] == prune or verb == prune[0] == "gc" for prune in _PRUNES)


@check(
    "docker-git-copied",
    severity=Severity.WARNING,
    family="docker",
    explains="A copied .git holds every commit that the repository had, the reference solution perhaps among them.",
    fix="list .git in environment/.dockerignore, or remove it in the Dockerfile",
)
def git_copied(context: CheckContext) -> Iterator[Place]:
    """Look for git repositories that a COPY takes along."""
    seen: set[str] = set()
    for one in copied(context):
        folder, sign, below = one.path.rpartition("/.git/")
        if sign and below == "HEAD" and folder not in seen and not one.removed:
            seen.add(folder)
            yield Place(f"{folder}/.git", f"the agent's image gets the history of {folder}")
