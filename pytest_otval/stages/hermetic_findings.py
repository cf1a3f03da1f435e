"""What the hermetic stage finds, with the place in the task's files where that can be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_otval.core import Finding, Severity, StageResult, Verdict, printable
from pytest_otval.sandbox.base import Phase
from pytest_otval.stages.hermetic_places import place_of
from pytest_otval.stages.keep import as_toml
from pytest_otval.task.load import TASK_TOML, Task
from pytest_otval.task.network import declares_public

_SHOWN = 5
_MAX_KEEP = 20
_PINNED = "install what it fetches in the Dockerfile, pinned"

Facts = Mapping[str, Any]


def findings(task: Task, facts: Facts, with_network: StageResult, without: StageResult) -> list[Finding]:
    """Return what is to be said of a task; only the first kind is an error."""
    return [
        *_rewards(task, with_network, without),
        *_network(task, facts["network"]),
        *_writes(facts),
        *_keep(facts["keep"], facts["keep_more"]),
    ]


def _rewards(task: Task, with_network: StageResult, without: StageResult) -> Iterator[Finding]:
    online, offline = (one.verdict is Verdict.PASS for one in (with_network, without))
    scores = f"scores {_score(with_network)} with the network and {_score(without)} without"
    if online == offline:
        if with_network.facts["score"] != without.facts["score"]:
            yield _of_task("hermetic-score", Severity.WARNING, f"the reference solution {scores}", _PINNED)
    elif online and declares_public(task):
        words = f"the reference solution {scores}, as task.toml asks for the network"
        yield _of_task("hermetic-reward", Severity.INFO, words, "")
    else:
        fix = f"{_PINNED}, or declare the need: network_mode = 'public'"
        if offline:
            fix = "find out what the network changes; network_mode = 'no-network' keeps it away"
        yield _of_task("hermetic-reward", Severity.ERROR, f"the reference solution {scores}", fix)


def _score(result: StageResult) -> str:
    score = result.facts["score"]
    return f"nothing ({result.reason})" if score is None else f"{score:g}"


def _of_task(check: str, severity: Severity, message: str, fix: str) -> Finding:
    return Finding(check, severity, message, TASK_TOML, None, fix)


_ASKING: tuple[tuple[Phase, str, str, Severity], ...] = (
    ("verifier", "hermetic-verifier-network", "the verifier", Severity.WARNING),
    ("agent", "hermetic-solution-network", "the reference solution", Severity.INFO),
)


def _network(task: Task, heard: Facts) -> Iterator[Finding]:
    for phase, check, who, severity in _ASKING:
        told = heard[phase]
        asked = told["names"] or told["addresses"] or told["more"]
        if not asked and not told["unheard"]:
            continue
        path, line = place_of(task, phase, told["names"])
        if told["unheard"]:
            words = f"what {who} asks of the network was not observed: {told['unheard']}"
            yield Finding(check, Severity.INFO, printable(words), path, None)
        if asked:
            words = f"{who} asks the network for {_few([*told['names'], *told['addresses']], told['more'])}"
            yield Finding(check, severity, words, path, line, _PINNED)


def _writes(facts: Facts) -> Iterator[Finding]:
    for name, check, words, severity in (
        ("verifier_wrote", "hermetic-verifier-writes", "the verifier writes outside /logs and /tmp", Severity.INFO),
        ("noop_changed", "hermetic-noop-changes", "without any agent its phase changes", Severity.WARNING),
    ):
        told = facts[name]
        if told["count"] or not told["whole"]:
            more = "" if told["whole"] else " and more that is not listed"
            listed = _few(told["paths"], told["count"] - len(told["paths"]))
            path = "tests/test.sh" if name == "verifier_wrote" else TASK_TOML
            yield Finding(check, severity, f"{words}: {listed}{more}", path)


def _keep(entries: list[str], left_out: int) -> Iterator[Finding]:
    if not entries and not left_out:
        return
    words = "the reference solution changes folders of the system, which stricter isolation takes from the image"
    words += f"; {left_out} of the paths are too many or too odd to be proposed" if left_out else ""
    more = f"  # {len(entries) - _MAX_KEEP} more are in the ledger" if len(entries) > _MAX_KEEP else ""
    fix = f"{as_toml(entries[:_MAX_KEEP])}{more}" if entries else ""
    yield _of_task("keep-proposed", Severity.INFO, words, fix)


def _few(names: list[str], more: int = 0) -> str:
    more += max(0, len(names) - _SHOWN)
    shown = ", ".join(names[:_SHOWN]) or "something"
    return f"{shown} and {more} more" if more else shown
