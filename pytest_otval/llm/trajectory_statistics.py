"""What one conversation of an agent says about how it worked. Each definition stands in docs/teacher-statistics.md."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from pytest_otval.llm.actions import Action, Seen, is_test_file, look_at
from pytest_otval.llm.loops import loops_of
from pytest_otval.llm.steps import Step

MOST_VERBS = 50
"""So many programs are counted by name, the most frequent; the others together, as ``other``."""

MOST_HOSTS = 20

CONTEXT_CUT = 0.8
"""A conversation that is shorter than this share of what it was one step before was cut or summarised."""

_SUCCESS = re.compile(
    r"\b(?:all (?:the )?tests (?:now )?pass|tests (?:are )?(?:now )?passing|successfully|is (?:now )?(?:complete|fixed"
    r"|done|solved|working)|has been (?:completed|fixed|solved|implemented|resolved)|task (?:is )?complete"
    r"|works as expected|now works|done[.!]|fixed[.!]|completed?[.!])",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:could ?n[o']t|cannot|can't|unable to|failed to|not able to|still fail|did ?n[o']t (?:work|succeed|manage)"
    r"|unsuccessful|incomplete|not (?:complete|fixed|solved|working)|gave up|give up)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of one conversation. Steps are numbered from 1; None where there was none."""

    steps: int = 0
    commands: int = 0
    """Steps that called a tool."""
    failed: int = 0
    malformed: int = 0
    longest_malformed: int = 0
    """In a row."""
    nonzero: int = 0
    timeouts: int = 0
    not_understood: int = 0
    """Commands that bash's grammar does not take; of these nothing below knows what they do."""
    kinds: Mapping[str, int] = field(default_factory=dict)
    """Steps by what they do; one that does several things counts for each."""
    verbs: Mapping[str, int] = field(default_factory=dict)
    """Programs, each time one stands in a command."""
    repeated_steps: int = 0
    repeated_ngrams: int = 0
    longest_repeat: int = 0
    steps_in_loops: int = 0
    first_edit: int | None = None
    last_edit: int | None = None
    first_test: int | None = None
    edited_files: int = 0
    read_before_edit: int = 0
    """Edited files that an earlier command had printed."""
    tests_written: int = 0
    """Edited files that have a test's name."""
    late_edits: int = 0
    """Steps with an edit in the last tenth of the steps."""
    test_runs: int = 0
    tests_after_edit: int = 0
    """Test runs after the last edit."""
    last_test_status: int | None = None
    protected: tuple[str, ...] = ()
    network_commands: int = 0
    installs: int = 0
    hosts: tuple[str, ...] = ()
    model_seconds: float = 0.0
    command_seconds: float = 0.0
    claimed_success: bool = False
    self_verified: bool = False
    """Tests were run after the last edit, or at all where nothing was edited."""
    reasoning: str = "none"
    """``none``, ``present``, or ``stripped``: counted in tokens, but the text is not there."""
    peak_context: int = 0
    """Tokens of the longest conversation with its answer."""
    context_cuts: int = 0
    tokens: int = 0
    """Of all prompts and answers."""


def statistics_of(steps: Sequence[Step], final: str = "") -> Statistics:
    """Return the statistics of a conversation; ``final`` is what the agent handed in as its last word, if it did."""
    seen = [look_at(step.tool, step.command) if step.command and not step.malformed else Seen() for step in steps]
    loops = loops_of(steps)
    work = _Work(steps, seen)
    return Statistics(
        steps=len(steps),
        commands=sum(step.command != "" for step in steps),
        failed=sum(step.failed for step in steps),
        malformed=sum(step.malformed for step in steps),
        longest_malformed=_longest(step.malformed for step in steps),
        nonzero=sum(step.status not in (0, None) for step in steps),
        timeouts=sum(step.timed_out for step in steps),
        not_understood=sum(not one.understood for one in seen),
        kinds=dict(Counter(kind for one in seen for kind in _kinds(one))),
        verbs=_histogram(verb for one in seen for verb in one.verbs),
        repeated_steps=loops.repeated_steps,
        repeated_ngrams=loops.repeated_ngrams,
        longest_repeat=loops.longest_repeat,
        steps_in_loops=loops.steps_in_loops,
        first_edit=work.first("edit"),
        last_edit=work.last("edit"),
        first_test=work.first("test"),
        edited_files=len(work.edited),
        read_before_edit=len(work.read_before),
        tests_written=sum(map(is_test_file, work.edited)),
        late_edits=work.late_edits,
        test_runs=len(work.steps_of("test")),
        tests_after_edit=work.tests_after_edit,
        last_test_status=work.last_test_status,
        protected=tuple(sorted(frozenset().union(*(one.protected for one in seen)))),
        network_commands=sum(one.uses_network for one in seen),
        installs=sum(any(action.kind == "install" for action in one.actions) for one in seen),
        hosts=tuple(sorted(frozenset().union(*(one.hosts for one in seen)))[:MOST_HOSTS]),
        model_seconds=sum(step.model_seconds for step in steps),
        command_seconds=sum(step.command_seconds for step in steps),
        claimed_success=claims_success(final or (steps[-1].thought if steps else "")),
        self_verified=work.tests_after_edit > 0,
        reasoning=_reasoning(steps),
        peak_context=max((step.usage.prompt + step.usage.completion for step in steps), default=0),
        context_cuts=_context_cuts(steps),
        tokens=sum(step.usage.prompt + step.usage.completion for step in steps),
    )


def claims_success(text: str) -> bool:
    """Whether a last word says that the work is done, and nothing that takes it back. A guess by words, in English."""
    return _SUCCESS.search(text) is not None and _DOUBT.search(text) is None


class _Work:
    """The order of reading, editing and testing."""

    def __init__(self, steps: Sequence[Step], seen: Sequence[Seen]) -> None:
        self.count = len(steps)
        self.actions: list[tuple[int, Action]] = [
            (number, action) for number, one in enumerate(seen, 1) for action in one.actions
        ]
        self.edited: set[str] = set()
        """Files by their whole names as written; the same file under two names counts twice."""
        self.read_before: set[str] = set()
        self.tests_after_edit = 0
        self._follow()
        tests = self.steps_of("test")
        self.last_test_status = steps[tests[-1] - 1].status if tests else None

    def _follow(self) -> None:
        read: set[str] = set()
        tests: set[int] = set()
        for number, action in self.actions:
            name = posixpath.basename(action.path)
            if action.kind == "read":
                read.add(name)
            elif action.kind == "edit":
                tests.clear()
                if name and action.path not in self.edited:
                    self.edited.add(action.path)
                    if name in read:
                        self.read_before.add(action.path)
            elif action.kind == "test":
                tests.add(number)
        self.tests_after_edit = len(tests)

    def steps_of(self, kind: str) -> list[int]:
        """Return the numbers of the steps that do such a thing."""
        return list(dict.fromkeys(number for number, action in self.actions if action.kind == kind))

    def first(self, kind: str) -> int | None:
        return next(iter(self.steps_of(kind)), None)

    def last(self, kind: str) -> int | None:
        return next(iter(reversed(self.steps_of(kind))), None)

    @property
    def late_edits(self) -> int:
        return sum(number > 0.9 * self.count for number in self.steps_of("edit"))


def _kinds(seen: Seen) -> set[str]:
    """Return what a step does; ``other`` (``cd``, ``echo``) is only said where there is nothing else."""
    kinds = {action.kind for action in seen.actions}
    return kinds - {"other"} or kinds


def _longest(flags: Iterable[bool]) -> int:
    longest = run = 0
    for flag in flags:
        run = run + 1 if flag else 0
        longest = max(longest, run)
    return longest


def _histogram(verbs: Iterable[str]) -> dict[str, int]:
    ordered = sorted(Counter(verbs).items(), key=lambda item: (-item[1], item[0]))
    shown, rest = ordered[:MOST_VERBS], sum(count for _, count in ordered[MOST_VERBS:])
    return dict(shown) | ({"other": rest} if rest else {})


def _reasoning(steps: Sequence[Step]) -> str:
    if any(step.reasoning for step in steps):
        return "present"
    return "stripped" if any(step.usage.reasoning for step in steps) else "none"


def _context_cuts(steps: Sequence[Step]) -> int:
    prompts = [step.usage.prompt for step in steps if step.usage.prompt]
    return sum(later < CONTEXT_CUT * earlier for earlier, later in pairwise(prompts))
