"""Patches for faults that many datasets have. Each is needed where the static check of its fault finds something.

So a patch cannot be applied to a sound task, and one that does not repair what it is for is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_otval.checks.context import MAX_TEXT, CheckContext
from pytest_otval.checks.fixes import NotFixedError, make_change, proposed, repairing
from pytest_otval.checks.registry import all_checks, run_checks
from pytest_otval.core import Finding
from pytest_otval.harden.proposal import Wishes, propose
from pytest_otval.runtimes.record import Reference, records
from pytest_otval.sources.editor import PatchError, TaskEditor, set_in
from pytest_otval.sources.patches import Needed, Patch
from pytest_otval.workspace import Workspace

DOCKERFILE = "environment/Dockerfile"

REPAIRED = ("text-crlf", "text-bom", "scripts-shebang", "scripts-exec-bit", "toml-deprecated")
"""Checks whose findings ``--otval-fix`` repairs."""

GUARD = """\
# The reward is 0 until the tests say otherwise, and nobody else's.
mkdir -p /logs/verifier
rm -f /logs/verifier/reward.txt /logs/verifier/reward.json
trap '[ -s /logs/verifier/reward.txt ] || [ -s /logs/verifier/reward.json ] || echo 0 >/logs/verifier/reward.txt' EXIT
"""


def findings(task: TaskEditor, *ids: str) -> list[Finding]:
    """Return what static checks of these ids find and nobody allows."""
    # A check may find what has another id than its own, as those of task.toml do.
    return [one for one in run_checks(task.task) if one.check in ids and not one.allowed]


def found(*ids: str) -> Needed:
    """Return a condition: one of these checks finds something."""
    return lambda task: bool(findings(task, *ids))


def safe_repairs() -> Patch:
    """Line ends, byte order marks, first lines, exec bits, old keys: what ``--otval-fix`` repairs."""

    def change(task: TaskEditor) -> None:
        repairs = repairing(all_checks().values())
        for _ in range(len(REPAIRED) + 1):
            context = CheckContext(task.task)
            changes = list(proposed(context, findings(task, *REPAIRED), repairs))
            if not changes:
                return
            for _, one in changes:
                try:
                    make_change(task.folder, one, MAX_TEXT)
                except NotFixedError as error:
                    raise PatchError(f"{one.path}: {error}") from None

    def needed(task: TaskEditor) -> bool:
        repairs = repairing(all_checks().values())
        return any(proposed(CheckContext(task.task), findings(task, *REPAIRED), repairs))

    return Patch("safe-repairs", "text", change, needed)


def reward_guard() -> Patch:
    """A reward of 0 before the tests and whenever they end early; rewards that lay there before are cleared."""

    def change(task: TaskEditor) -> None:
        for path in _test_scripts(task):
            text = task.text(path)
            first, end, rest = text.partition("\n")
            if GUARD in text:
                continue
            if re.search(r"^\s*trap\b", rest, re.MULTILINE):
                raise PatchError(f"{path} has a trap of its own, which this one would replace")
            head = f"{first}{end}" if first.startswith("#!") else ""
            task.write(path, f"{head}{GUARD}{text.removeprefix(head)}")

    return Patch("reward-guard", "reward-lost-on-failure", change, found("reward-lost-on-failure"))


def hardened_tests(runtime: str = "python-verifier") -> Patch:
    """Test scripts that run Python from the verifier's runtime and restore control files; see docs/hardening.md."""

    def wishes() -> Wishes:
        cache = Workspace.from_environment().runtimes
        newest = next((one for one in records(cache) if one.name == runtime and one.python), None)
        missing = f"{runtime} is not in the cache: python -m pytest_otval runtime build {runtime}"
        return Wishes(None if newest is None else Reference.of(newest), name=runtime, missing=missing)

    def change(task: TaskEditor) -> None:
        try:
            propose(task.task, wishes()).write(task.folder)
        except NotFixedError as error:
            raise PatchError(str(error)) from None

    return Patch(
        "hardened-tests", "ver-pytest-isolation", change, lambda task: bool(propose(task.task, wishes()).texts)
    )


def pinned_bases(digests: Mapping[str, str]) -> Patch:
    """Base images that a Dockerfile names without a version, by names that stay: ``{"ubuntu": "ubuntu:24.04@..."}``."""

    def change(task: TaskEditor) -> None:
        text = task.text(DOCKERFILE)
        for old, new in digests.items():
            pattern = rf"^(FROM\s+(?:--\S+\s+)*){re.escape(old)}(?=\s|$)"
            text = re.sub(pattern, rf"\g<1>{_plain(new)}", text, flags=re.MULTILINE | re.IGNORECASE)
        task.write(DOCKERFILE, text)

    def needed(task: TaskEditor) -> bool:
        lines = task.text(DOCKERFILE).splitlines()
        words = [line.split() for line in lines if line.upper().startswith("FROM ")]
        return any(word in digests for one in words for word in one[1:2])

    return Patch("pinned-bases", "docker-base-unpinned", change, needed)


def tests_out_of_image() -> Patch:
    """COPY and ADD of the solution or the tests into the agent's image are taken out."""
    ids = ("docker-solution-copied", "docker-tests-copied")

    def change(task: TaskEditor) -> None:
        lines = task.text(DOCKERFILE).split("\n")
        numbers = {one.line for one in findings(task, *ids) if one.path == DOCKERFILE and one.line}
        for number in sorted(numbers, reverse=True):
            if lines[number - 1].rstrip().endswith("\\"):
                raise PatchError(f"{DOCKERFILE}:{number} goes on in the next line: take it out by hand")
            del lines[number - 1]
        task.write(DOCKERFILE, "\n".join(lines))

    return Patch("tests-out-of-image", "docker-tests-copied", change, found(*ids))


def no_git_history(folder: str) -> Patch:
    """A repository that the image clones keeps one commit: what was checked out."""
    squash = (
        f"RUN cd {folder} && rm -rf .git && git init -q && git add -A"
        " && git -c user.name=task -c user.email=task@localhost commit -q -m start"
    )

    def change(task: TaskEditor) -> None:
        lines = task.text(DOCKERFILE).rstrip("\n").split("\n")
        last = max((n for n, line in enumerate(lines) if re.match(r"(?i)(USER|CMD|ENTRYPOINT)\s", line)), default=-1)
        at = last if last >= 0 else len(lines)
        task.write(DOCKERFILE, "\n".join([*lines[:at], squash, *lines[at:]]) + "\n")

    return Patch("no-git-history", "docker-git-history", change, found("docker-git-history"))


def package_lists() -> Patch:
    """``apt-get update`` before an ``apt-get install`` that has no lists."""

    def change(task: TaskEditor) -> None:
        lines = task.text(DOCKERFILE).split("\n")
        for one in findings(task, "docker-apt-no-lists"):
            if one.line:
                old = lines[one.line - 1]
                lines[one.line - 1] = re.sub(r"(?<![\w-])(apt(?:-get)?)\s", r"\1 update && \1 ", old, count=1)
        task.write(DOCKERFILE, "\n".join(lines))

    return Patch("package-lists", "docker-apt-no-lists", change, found("docker-apt-no-lists"))


def time_limits(agent: float, verifier: float) -> Patch:
    """Limits in seconds for tasks that have none, under which an agent may run for ever."""

    def change(task: TaskEditor) -> None:
        with task.toml() as document:
            for table, seconds in (("agent", agent), ("verifier", verifier)):
                if "timeout_sec" not in document.get(table, {}):
                    set_in(document, f"{table}.timeout_sec", seconds)

    return Patch("time-limits", "toml-timeouts-present", change, found("toml-timeouts-present"))


def resources(cpus: int, memory_mb: int, storage_mb: int) -> Patch:
    """Cores, and memory and storage in MiB, for tasks that leave them to whoever runs them."""

    def change(task: TaskEditor) -> None:
        with task.toml() as document:
            environment = document.setdefault("environment", {})
            for name, value in (("cpus", cpus), ("memory_mb", memory_mb), ("storage_mb", storage_mb)):
                if name not in environment:
                    environment[name] = value

    return Patch("resources", "toml-resources-absent", change, found("toml-resources-absent"))


def task_names() -> Patch:
    """[task].name of a task whose folder is called otherwise: reports and registries know it by the former."""

    def change(task: TaskEditor) -> None:
        with task.toml() as document:
            organisation = str(document["task"]["name"]).rpartition("/")[0]
            document["task"]["name"] = f"{organisation}/{task.name}" if organisation else task.name

    return Patch("task-names", "toml-name-folder", change, found("toml-name-folder"))


def _plain(text: str) -> str:
    return text.replace("\\", r"\\")


def _test_scripts(task: TaskEditor) -> list[str]:
    """Return the scripts whose reward is lost, by the findings' places."""
    return sorted({one.path for one in findings(task, "reward-lost-on-failure")})
