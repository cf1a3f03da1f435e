"""The reward: is it written, to the right place, and does it depend on the tests."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pytest_otval.checks.context import CheckContext, Script, Source
from pytest_otval.checks.flow import final_states
from pytest_otval.checks.flow_state import REWARD_FILES, Reward, State
from pytest_otval.checks.registry import Place, check
from pytest_otval.checks.scripts import is_shell
from pytest_otval.checks.shell import ShellScript, parse_shell
from pytest_otval.core import Severity

_MENTION = re.compile(r"reward|/logs\b|logs/verifier", re.IGNORECASE)
_REWARD_NAME = re.compile(r"rewards?\.(?:txt|json)\b")
_FOLDER_BACKWARDS = re.compile(r"(?:/[\w.${}\-]*)*")
_MAX_FOLDER = 300
_DECIDES = "write 1 or 0 to /logs/verifier/reward.txt by the result of the tests"


@dataclass(frozen=True, eq=False)
class _Verifier:
    """A step's test script, and what else may write the reward."""

    script: Script
    source: Source
    others: tuple[Source, ...]
    """The other files of /tests; those that are not text count as unable to tell."""
    opaque: bool
    """There are files in /tests that were not read as text."""

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.source.text, *(other.text for other in self.others))

    @cached_property
    def states(self) -> tuple[State, ...]:
        """The final states of the script; none where it is no shell script or cannot be followed."""
        script = parse_shell(self.source.text) if is_shell(self.source) else None
        if script is None:
            return ()
        read_in = {
            posixpath.basename(one.args[0]) for one in script.commands if one.name in ("source", ".") and one.args
        }
        # Code that writes a reward holds the file's name, or is given it.
        apart = [other for other in self.others if posixpath.basename(other.path) not in read_in]
        delegates = self.opaque or any(b"reward" in other.raw.lower() for other in apart)
        alone = _states_alone(self.source.text, self.source.shebang, delegates)
        if alone is not None:
            return alone
        by_name = {posixpath.basename(other.path): other for other in self.others}

        def sourced(path: str) -> ShellScript | None:
            other = by_name.get(posixpath.basename(path))
            return None if other is None else parse_shell(other.text)

        return final_states(script, self.source.shebang, delegates, sourced)


class _ReadsOthersError(Exception):
    pass


@lru_cache(maxsize=64)
def _states_alone(text: str, shebang: str, delegates: bool) -> tuple[State, ...] | None:
    """Return the final states of a script; None where others are read into it.

    Many tasks of a dataset may have the same test script.
    """

    def sourced(path: str) -> ShellScript | None:
        raise _ReadsOthersError

    script = parse_shell(text)
    try:
        return () if script is None else final_states(script, shebang, delegates, sourced)
    except _ReadsOthersError:
        return None


@lru_cache(maxsize=2)
def _verifiers(context: CheckContext) -> tuple[_Verifier, ...]:
    """Return the verifiers of a task; several checks ask."""
    return tuple(_found_verifiers(context))


def _found_verifiers(context: CheckContext) -> Iterator[_Verifier]:
    for script in context.scripts():
        source = context.source(script.path)
        if script.role != "test" or source is None or not source.whole or source.is_binary:
            continue
        files = {
            entry.path: entry
            for folder in context.test_folders(script.step)
            for entry in context.tree.under(folder)
            if entry.path != script.path and entry.kind in ("file", "link")
        }
        found = [context.source(path) for path in files]
        texts = tuple(one for one in found if one is not None and one.whole and not one.is_binary)
        yield _Verifier(script, source, texts, len(texts) < len(files))


def _outside(context: CheckContext) -> Iterator[str]:
    """Yield the texts of what else a verifier may run: files of the images."""
    for source in context.sources("environment"):
        if source.whole and not source.is_binary:
            yield source.text


@check(
    "reward-missing",
    severity=Severity.ERROR,
    family="rewards",
    explains="A verifier without a reward file gives no answer: Harbor reports an error for each trial.",
    fix=_DECIDES,
)
def missing(context: CheckContext) -> Iterator[Place]:
    """Look for test scripts that cannot write a reward, whatever happens."""
    for verifier in _verifiers(context):
        mentioned = any(_MENTION.search(text) for text in verifier.texts)
        if not mentioned and not verifier.opaque and not any(map(_MENTION.search, _outside(context))):
            yield Place(verifier.script.path, "no file of tests/ mentions a reward or /logs/verifier")
            continue
        states = verifier.states
        if states and all(state.reward is Reward.NONE for state in states):
            yield Place(verifier.script.path, "no way through the script writes a reward")


@check(
    "reward-path",
    severity=Severity.ERROR,
    family="rewards",
    explains="Harbor reads /logs/verifier/reward.txt and /logs/verifier/reward.json and nothing else.",
    fix="write to /logs/verifier/reward.txt",
)
def path(context: CheckContext) -> Iterator[Place]:
    """Look for rewards written under another path or name, where the right one appears nowhere."""
    for verifier in _verifiers(context):
        wrong: list[tuple[str, int, str]] = []
        for source in (verifier.source, *verifier.others):
            found = list(_reward_paths(source.text))
            if any(right for _, _, right in found):
                break
            wrong.extend((source.path, line, text) for text, line, _ in found)
        else:
            if not verifier.opaque:
                yield from (Place(path, f"{text} is not read as a reward", line) for path, line, text in wrong[:3])


def _reward_paths(text: str) -> Iterator[tuple[str, int, bool]]:
    """Yield each path of a reward file with its line and whether it is, or may be, one that Harbor reads."""
    for found in _REWARD_NAME.finditer(text):
        name, before = found[0], text[max(0, found.start() - _MAX_FOLDER) : found.start()]
        backwards = _FOLDER_BACKWARDS.match(before[::-1])
        folder = "" if backwards is None else backwards[0][::-1]
        absolute = folder.startswith("/") and "$" not in folder and "{" not in folder
        right = posixpath.normpath(folder + name) in REWARD_FILES if absolute else name.startswith("reward.")
        line_start = text.rfind("\n", 0, found.start()) + 1
        if right or (absolute and not text[line_start : found.start()].lstrip().startswith("#")):
            yield folder + name, text.count("\n", 0, found.start()) + 1, right


@check(
    "reward-unconditional",
    severity=Severity.ERROR,
    family="rewards",
    explains="A reward that is 1 on every way through the script says nothing about the agent's work.",
    fix=_DECIDES,
)
def unconditional(context: CheckContext) -> Iterator[Place]:
    """Look for test scripts that give a reward whatever the tests say.

    A warning where another step's does not; nothing where that is the last step and its reward alone counts.
    """
    given = [(verifier, verifier.states) for verifier in _verifiers(context)]
    always = [verifier for verifier, states in given if _always_positive(states) and not any(s.lost for s in states)]
    severity = Severity.ERROR if len(always) == len(given) else Severity.WARNING
    config = context.task.config
    only_last = config is not None and config.multi_step_reward_strategy == "final"
    for verifier in always:
        if severity is Severity.ERROR or not only_last or verifier.script.step == context.steps[-1]:
            yield Place(verifier.script.path, "every way through the script gives a reward above 0", severity=severity)


@check(
    "reward-status-lost",
    severity=Severity.ERROR,
    family="rewards",
    explains="The exit status of the tests is gone before it is looked at, so failed tests are rewarded.",
    fix="keep the status at once: `if pytest ...; then` or `pytest ... ; code=$?`; with a pipe, `set -o pipefail`",
)
def status_lost(context: CheckContext) -> Iterator[Place]:
    """Look for test scripts that give a reward whatever the tests say because a status is thrown away."""
    for verifier in _verifiers(context):
        states = verifier.states
        event = next((state.lost for state in states if state.lost), None)
        if _always_positive(states) and event is not None:
            yield Place(verifier.script.path, f"every way gives a reward above 0: {event.what}", event.line)


def _always_positive(states: tuple[State, ...]) -> bool:
    """Whether each way that gets to its end gives a reward above 0; doubtful early ends by errexit do not count."""
    counted = [state for state in states if state.reward is not Reward.NONE or state.certain or state.failed]
    return bool(counted) and all(state.reward is Reward.POSITIVE for state in counted)


@check(
    "reward-lost-on-failure",
    severity=Severity.ERROR,
    family="rewards",
    explains="Where the tests fail and no reward is written, a failed attempt looks like a broken verifier.",
    fix="write 0 before the tests run, or on EXIT: trap '[ -f /logs/verifier/reward.txt ] || echo 0 > ...' EXIT",
)
def lost_on_failure(context: CheckContext) -> Iterator[Place]:
    """Look for a way on which the tests fail and the script ends without a reward."""
    for verifier in _verifiers(context):
        states = verifier.states
        if all(state.reward is Reward.NONE for state in states):
            continue  # reward-missing says so
        for state in states:
            if state.certain and state.failed is not None and state.reward is Reward.NONE:
                why = "the script ends there (set -e)" if state.errexit and state.status != "0" else "the script ends"
                message = f"where `{state.failed.what}` fails, {why} without a reward"
                yield Place(verifier.script.path, message, state.failed.line)
                break
