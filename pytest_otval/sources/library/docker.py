"""Patches of Dockerfiles."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.docker_files import delivered, local_sources
from pytest_otval.checks.docker_git import clones
from pytest_otval.checks.docker_hygiene import hides_error
from pytest_otval.checks.docker_runs import Command as HiddenCommand
from pytest_otval.checks.docker_runs import join
from pytest_otval.checks.docker_view import agent_image, images
from pytest_otval.checks.shell_commands import unwrapped
from pytest_otval.harden.tree import Command, commands, statement_of
from pytest_otval.sources.dockerfiles import DOCKERFILE, DockerfileEdit
from pytest_otval.sources.editor import PatchError, TaskEditor
from pytest_otval.sources.library.needs import findings, found
from pytest_otval.sources.library.pins import installs
from pytest_otval.sources.patches import Change, Patch
from pytest_otval.sources.scripts import excuses
from pytest_otval.task.context import list_context

_APT = ("apt-get", "apt")
_MOST_ROUNDS = 50
"""Places of one fault in one task."""


def tests_out_of_image() -> Patch:
    """Copies of the solution and of the tests in the agent's build context are removed, and what copies them."""
    ids = ("docker-solution-copied", "docker-tests-copied")

    def change(task: TaskEditor) -> None:
        before = _sources(task)
        # Each has a twin in solution/ or tests/: that is how it was found.
        for path in sorted({one.path for one in findings(task, *ids)}):
            task.remove(path)
        file = DockerfileEdit(task)
        for instruction in file.file:
            wanted = [word for word in local_sources(instruction) if before.get(word)]
            gone = [word for word in wanted if not _sources_of(task, word)]
            if gone:
                kept = [word for word in instruction.args[:-1] if word.strip("\"'") not in gone]
                if kept:
                    file.rewrite(instruction, [*kept, instruction.args[-1]])
                else:
                    file.remove(instruction)
        if file.edits.made:
            file.save()

    return Patch("tests-out-of-image", "docker-tests-copied", change, found(*ids))


def _sources(task: TaskEditor) -> dict[str, bool]:
    """Return whether each source of a COPY is there."""
    words = (word for one in DockerfileEdit(task).file for word in local_sources(one))
    return {word: _sources_of(task, word) for word in words}


def _sources_of(task: TaskEditor, word: str) -> bool:
    try:
        context = list_context(task.folder / "environment")
        return any(context.match(word)) or context.find(word) is not None
    except (ValueError, OSError) as error:
        raise PatchError(f"what {DOCKERFILE} copies cannot be told: {error}") from None


def no_git_history() -> Patch:
    """Commits later than the one that the image checks out are removed from the repositories that it clones."""

    def change(task: TaskEditor) -> None:
        image = agent_image(CheckContext(task.task))
        lines = {one.line for one in findings(task, "docker-git-history")}
        assert image is not None, "what was found was found in it"
        file = DockerfileEdit(task)
        for clone in clones(image, image.chain):
            if clone.line in lines:
                after = max(one.line for one in clone.later if one.name == "git")
                file.insert(file.at(after), prune(clone.place), after=True)
        file.save()

    return Patch("no-git-history", "docker-git-history", change, found("docker-git-history"))


def prune(folder: str) -> str:
    """Return a RUN that leaves a repository no commit but those that lead to the one checked out."""
    refs = "git for-each-ref --format='%(refname)' --no-merged HEAD | xargs -r -n 1 git update-ref -d"
    return " \\\n && ".join(
        (
            f"RUN cd '{folder}'",
            "git remote | xargs -r -n 1 git remote remove",
            refs,
            "rm -f .git/FETCH_HEAD .git/ORIG_HEAD",
            "git reflog expire --expire=now --all",
            "git gc -q --prune=now",
        )
    )


def package_lists() -> Patch:
    """``apt-get update`` before an ``apt-get install`` that has no lists."""

    def one(file: DockerfileEdit, command: Command) -> None:
        program = next(word for word in command.words if word.text in _APT)
        # With what stands in front of it, as in `sudo apt-get`.
        start = " ".join(word.source for word in command.words if word.start <= program.start)
        file.edits.insert(command.node.start_byte, f"{start} update && ")

    return Patch(
        "package-lists", "docker-apt-no-lists", _each("docker-apt-no-lists", one), found("docker-apt-no-lists")
    )


def apt_says_yes() -> Patch:
    """``-y`` for an ``apt-get install`` that would ask."""

    def one(file: DockerfileEdit, command: Command) -> None:
        verb = next(word for word in command.words if word.text == "install")
        if not _YES.intersection(command.texts):
            file.edits.insert(verb.end, " -y")

    return Patch("apt-says-yes", "docker-apt-asks", _each("docker-apt-asks", one), found("docker-apt-asks"))


_YES = frozenset(("-y", "--yes", "--assume-yes", "-qy", "-yq", "-qq", "-qqy", "-yqq"))


def _each(check: str, edit: Callable[[DockerfileEdit, Command], None]) -> Change:
    """Return a change that edits the installations by apt where a check finds something, which may be one at a time."""

    def change(task: TaskEditor) -> None:
        for _ in range(_MOST_ROUNDS):
            places = {(one.path, one.line) for one in findings(task, check)}
            if not places:
                return
            path, line = min(places, key=str)
            file = DockerfileEdit(task, path)
            for _, command in file.run_commands():
                if command.line == line and "install" in command.texts and set(_APT).intersection(command.texts):
                    edit(file, command)
            if not file.edits.made:
                raise PatchError(f"{path}:{line}: the installation is not understood")
            file.save()

    return change


def build_errors_shown() -> Patch:
    """``|| true`` behind installations, builds and downloads goes: where they fail there is no image.

    Some images are only built because of it: ``effect --stages build`` tells.
    """

    def change(task: TaskEditor) -> None:
        for _ in range(_MOST_ROUNDS):
            hidden = findings(task, "docker-error-hidden")
            if not hidden:
                return
            place = hidden[0]
            file = DockerfileEdit(task, place.path)
            image = next(one for one in images(CheckContext(task.task)) if one.path == place.path)
            _show(file, [one for one in image.commands if one.line == place.line and hides_error(one)])
            file.save()

    return Patch("build-errors-shown", "docker-error-hidden", change, found("docker-error-hidden"))


def _show(file: DockerfileEdit, hidden: Sequence[HiddenCommand]) -> None:
    """Take out what excuses the failure of commands of one line."""
    line = hidden[0].line
    starts = {one.words[:2] for one in hidden}
    root = file.shell(file.at(line))
    for left, right in () if root is None else excuses(root):
        inside = (tuple(unwrapped(command.texts)[:2]) for command in commands(left))
        if file.line(left.start_byte) <= line <= file.line(left.end_byte) and starts.intersection(inside):
            file.edits.replace(left.end_byte, right.end_byte, "")
    if not file.edits.made:
        raise PatchError(f"{file.path}:{line}: what hides the error is not understood")


def quoted_versions() -> Patch:
    """Bounds of versions that a shell takes for redirects (``pip install x>=1.2``) get quotes."""

    def change(task: TaskEditor) -> None:
        for _ in range(_MOST_ROUNDS):
            bare = findings(task, "docker-version-redirected")
            if not bare:
                return
            file = DockerfileEdit(task, bare[0].path)
            _quote(file)
            file.save()

    return Patch("quoted-versions", "docker-version-redirected", change, found("docker-version-redirected"))


def _quote(file: DockerfileEdit) -> None:
    for _, command in file.run_commands():
        if installs(command):
            statement = statement_of(command.node)
            for one in _BOUND.finditer(file.source, statement.start_byte, statement.end_byte):
                if one["end"]:
                    break
                if one["bare"]:
                    file.edits.replace(one.start(), one.end(), f"'{one['bare'].decode()}'")


_BOUND = re.compile(
    rb"""'[^']*'|"(?:[^"\\]|\\.)*"|(?P<end>[;|]|&&)|(?<=\s)(?P<bare>[A-Za-z][\w.\[\]-]*(?:[!~=]=[\w.*]+,)*[<>]=?\d[\w.]*(?:,[!~=<>]=?[\w.*]+)*)"""
)
"""What is quoted already, the end of a command, or a requirement with a bound that has no quotes."""


def run_bits() -> Patch:
    """Exec bits of files that a RUN calls by their path."""

    def change(task: TaskEditor) -> None:
        for _ in range(_MOST_ROUNDS):
            context = CheckContext(task.task)
            image = agent_image(context)
            lines = {one.line for one in findings(task, "docker-run-not-executable")}
            if image is None or not lines:
                return
            places = {join(one.folder, one.words[0]) for one in image.commands if one.line in lines and one.words}
            for one in delivered(context):
                if one.place in places and not one.executable:
                    task.make_executable(one.path)

    return Patch("run-bits", "docker-run-not-executable", change, found("docker-run-not-executable"))
