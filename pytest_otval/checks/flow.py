"""Every way through a test script, as far as it decides the reward.

The script is walked with sets of states. Where only a run can tell how a command ends, both ends are followed; a test
runner's failure is remembered, so that at the end one can ask what reward a failure leaves. Nothing is claimed where
the walk meets something it does not understand: code that may write a reward makes the reward unknown, and too many
states end the walk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pytest_otval.checks import flow_simple as simple
from pytest_otval.checks import shell_ast as ast
from pytest_otval.checks.flow_outcome import Outcome, Signal, back, distinct, flipped, settled
from pytest_otval.checks.flow_state import NONZERO, UNKNOWN, Event, Reward, State
from pytest_otval.checks.flow_values import decide, value
from pytest_otval.checks.shell import ShellScript, parse_shell
from pytest_otval.checks.shell_commands import Kind, kind_of

_MAX_STATES = 400
_MAX_STEPS = 20_000
_MAX_CALLS = 10
_LOOP_ROUNDS = 2
"""Rounds of a loop that are followed: the second starts from what the first left."""


class _GiveUpError(Exception):
    pass


def final_states(
    script: ShellScript, shebang: str, delegates: bool, sourced: Callable[[str], ShellScript | None]
) -> tuple[State, ...]:
    """Return the states in which a script can end; none where they are too many to follow.

    ``delegates``: other files of /tests have to do with rewards. ``sourced``: returns the script that a path given to
    ``source`` is, where it is one of the task's.
    """
    walk = _Walk(delegates, sourced)
    start = simple.set_options(shebang.split()[1:], State())
    try:
        ends: dict[State, None] = {}
        for outcome in walk.run(script.body, start, tested=False):
            ends.update(dict.fromkeys(walk.leave(outcome.state)))
        return tuple(ends)
    except (_GiveUpError, RecursionError):
        return ()


class _Walk:
    def __init__(self, delegates: bool, sourced: Callable[[str], ShellScript | None]) -> None:
        self.delegates = delegates
        self.sourced = sourced
        self.functions: dict[str, ast.Node] = {}
        self.steps = 0
        self.calls = 0
        self.rules: Mapping[type[ast.Node], Callable[[Any, State, bool], list[Outcome]]] = {
            ast.Sequence: lambda node, state, tested: self.sequence(node.body, state, tested),
            ast.AndOr: self.and_or,
            ast.If: self.branch,
            ast.Pipeline: self.pipeline,
            ast.Test: self.test,
            ast.Group: self.group,
            ast.Loop: self.loop,
            ast.Case: self.case,
            ast.Not: lambda node, state, _: [flipped(one) for one in self.run(node.body, state, tested=True)],
            ast.Background: self.background,
            ast.Function: self.define,
        }

    def leave(self, state: State) -> list[State]:
        """Run the EXIT trap, if any."""
        return self.trapped(state.exit_trap, state._replace(exit_trap=""))

    def trapped(self, action: str, state: State) -> list[State]:
        """Run a trap's action; the status stays what it was."""
        if not action:
            return [state]
        parsed = parse_shell(action) if UNKNOWN not in action else None
        if parsed is None:
            return [state.write("maybe", Reward.UNKNOWN)]
        outcomes = self.run(parsed.body, state, tested=True)
        return [outcome.state._replace(status=state.status) for outcome in outcomes]

    def run(self, node: ast.Node, state: State, *, tested: bool, piped: str | None = None) -> list[Outcome]:
        """Return the ways a node can end. ``tested``: a failure is looked at, so errexit does not act."""
        self.steps += 1
        if self.steps > _MAX_STEPS:
            raise _GiveUpError
        if isinstance(node, ast.Simple):
            return self.simple(node, state, tested, piped)
        return self.rules[type(node)](node, state, tested)

    def sequence(self, body: Iterable[ast.Node], state: State, tested: bool) -> list[Outcome]:
        """Run commands one after the other."""
        current, gone = [state], list[Outcome]()
        for node in body:
            following: dict[State, None] = {}
            for before in current:
                for one in settled(before, self.run(node, before, tested=tested)):
                    if one.signal is Signal.NEXT:
                        following[one.state] = None
                    else:
                        gone.append(one)
            current = list(following)
            if len(current) + len(gone) > _MAX_STATES:
                raise _GiveUpError
        return distinct([*gone, *map(Outcome, current)])

    def ending(self, state: State, line: int, tested: bool) -> list[Outcome]:
        """Return how the script goes on after a command with a status: errexit and the ERR trap act here."""
        if tested or state.status == "0":
            return [Outcome(state)]
        after = self.trapped(state.err_trap, state._replace(err_trap="")) if state.err_trap else [state]
        restored = [one._replace(err_trap=state.err_trap) for one in after]
        return [Outcome(one, Signal.EXIT if one.errexit else Signal.NEXT) for one in restored]

    def test(self, node: ast.Test, state: State, tested: bool) -> list[Outcome]:
        """Run a test; where only a run can tell, both answers are followed."""
        answer = decide(node.condition, state)
        if answer is None:
            ends = [state._replace(status=status, certain=False) for status in ("0", NONZERO)]
        else:
            ends = [state._replace(status="0" if answer != node.negated else NONZERO)]
        return [outcome for end in ends for outcome in self.ending(end, node.line, tested)]

    def and_or(self, node: ast.AndOr, state: State, tested: bool) -> list[Outcome]:
        """Run ``left && right`` or ``left || right``."""
        outcomes: list[Outcome] = []
        for left in self.run(node.left, state, tested=True):
            succeeded = left.state.status == "0"
            if left.signal is not Signal.NEXT or succeeded == (node.operator == "||"):
                outcomes.append(left)
                continue
            before = left.state
            if not succeeded and before.failed and before.lost is None and _is_excuse(node.right):
                before = before._replace(lost=Event(node.line, "`|| true` and its like make every status 0"))
            outcomes.extend(self.run(node.right, before, tested=tested))
        return distinct(outcomes)

    def branch(self, node: ast.If, state: State, tested: bool) -> list[Outcome]:
        """Run an if statement."""
        outcomes: list[Outcome] = []
        pending = [state]
        for condition, body in node.branches:
            asked = [one for before in pending for one in self.run(condition, before, tested=True)]
            outcomes.extend(one for one in asked if one.signal is not Signal.NEXT)
            met = [one.state for one in asked if one.signal is Signal.NEXT and one.state.status == "0"]
            pending = [one.state for one in asked if one.signal is Signal.NEXT and one.state.status != "0"]
            outcomes.extend(one for before in met for one in self.run(body, before, tested=tested))
        for before in pending:
            clear = before if node.otherwise != ast.Sequence(()) else before._replace(status="0")
            outcomes.extend(self.run(node.otherwise, clear, tested=tested))
        return distinct(outcomes)

    def pipeline(self, node: ast.Pipeline, state: State, tested: bool) -> list[Outcome]:
        """Run ``a | b``: each in a shell of its own, the status that of the last, or of the last to fail."""
        ways: list[tuple[State, str]] = [(state, "0")]
        piped: str | None = None
        for index, part in enumerate(node.body):
            last = index == len(node.body) - 1
            following: list[tuple[State, str]] = []
            for before, worst in ways:
                for one in self.run(part, before, tested=tested, piped=piped if index else None):
                    after, status = one.state, one.state.status
                    if status != "0" and after.failed and not before.failed and not last and not state.pipefail:
                        where = "a pipe hands on the status of its last command alone (no `set -o pipefail`)"
                        after = after._replace(lost=after.lost or Event(node.line, where))
                    following.append((after, status if status != "0" or not state.pipefail else worst))
            ways = list(dict.fromkeys(following))
            piped = self.output(part, state) if index == 0 else UNKNOWN
        ends = [back(after, state)._replace(status=status) for after, status in ways]
        return distinct(outcome for end in ends for outcome in self.ending(end, node.line, tested))

    def output(self, node: ast.Node, state: State) -> str:
        """Return what a command writes into a pipe, where that is known."""
        if not isinstance(node, ast.Simple):
            return UNKNOWN
        return simple.written_text(node, [value(word, state) for word in node.words], state)

    def group(self, node: ast.Group, state: State, tested: bool) -> list[Outcome]:
        """Run ``{ }``, ``( )``, or a compound command whose output goes to a file."""
        outcomes: list[Outcome] = []
        for one in self.run(node.body, state, tested=tested):
            after = simple.redirected(node.redirects, UNKNOWN, one.state)
            if node.subshell:
                outcomes.extend(self.ending(back(after, state), 0, tested))
            else:
                outcomes.append(Outcome(after, one.signal))
        return distinct(outcomes)

    def case(self, node: ast.Case, state: State, tested: bool) -> list[Outcome]:
        """Run a case statement: any of its branches."""
        doubtful = state._replace(certain=False)
        outcomes = [one for body in node.branches for one in self.run(body, doubtful, tested=tested)]
        return distinct(outcomes if node.complete else [*outcomes, Outcome(doubtful._replace(status="0"))])

    def background(self, node: ast.Background, state: State, _tested: bool) -> list[Outcome]:
        """Start a command in the background: its files stay, its status is not seen."""
        ends = [one.state for one in self.run(node.body, state, tested=True)]
        return distinct(Outcome(state._replace(status="0", txt=end.txt, json=end.json, ran=end.ran)) for end in ends)

    def define(self, node: ast.Function, state: State, _tested: bool) -> list[Outcome]:
        """Define a function."""
        self.functions[node.name] = node.body
        return [Outcome(state._replace(status="0"))]

    def loop(self, node: ast.Loop, state: State, tested: bool) -> list[Outcome]:
        """Run a loop no, one or two times."""
        left: list[Outcome] = [] if node.endless else [Outcome(state._replace(status="0", certain=False))]
        current = [state._replace(certain=False)]
        for _ in range(_LOOP_ROUNDS):
            following: dict[State, None] = {}
            for before in current:
                for one in self.sequence((node.condition, node.body), before, tested=tested):
                    if one.signal in (Signal.EXIT, Signal.RETURN):
                        left.append(one)
                    else:
                        following[one.state] = None
            current = list(following)
            left.extend(map(Outcome, current))
            if len(left) > _MAX_STATES:
                raise _GiveUpError
        return distinct(left)

    def simple(self, node: ast.Simple, state: State, tested: bool, piped: str | None) -> list[Outcome]:
        """Run a simple command, an assignment or a builtin."""
        state = simple.substitution_effects(node, self, state)
        words = node.literals or [value(word, state) for word in node.words]
        name = words[0] if words else ""
        if name in ("exit", "return", "break", "continue"):
            status = words[1] if len(words) > 1 else state.status
            after = state._replace(status="0" if status == "0" else NONZERO)
            signals = {"exit": Signal.EXIT, "return": Signal.RETURN}
            return [Outcome(after, signals.get(name, Signal.BREAK))]
        if name in self.functions:
            return self.call(node, words, state, tested)
        if name in ("source", "."):
            return self.source(words, state, tested)
        if name == "exec" and words[1:]:
            return [Outcome(state._replace(certain=False).write("maybe", Reward.UNKNOWN), Signal.EXIT)]
        ends = simple.ends(node, words, piped, self, state)
        return [outcome for end in ends for outcome in self.ending(end, node.line, tested)]

    def call(self, node: ast.Simple, words: Sequence[str], state: State, tested: bool) -> list[Outcome]:
        """Call a function of the script."""
        if self.calls >= _MAX_CALLS:
            raise _GiveUpError
        inside = state
        for number, word in enumerate(words[1:], start=1):
            inside = inside.put(str(number), word)
        self.calls += 1
        outcomes = self.run(self.functions[words[0]], inside, tested=tested)
        self.calls -= 1
        found: list[Outcome] = []
        for one in outcomes:
            after = simple.redirected(node.redirects, UNKNOWN, one.state)
            if one.signal is Signal.EXIT:
                found.append(Outcome(after, Signal.EXIT))
            else:
                found.extend(self.ending(after, node.line, tested))
        return distinct(found)

    def source(self, words: Sequence[str], state: State, tested: bool) -> list[Outcome]:
        """Read another script of the task into this one; of others only that they may fail is known."""
        script = self.sourced(words[1]) if len(words) > 1 else None
        if script is None:
            ends = [state._replace(status="0"), state._replace(status=NONZERO, certain=False)]
            return [outcome for end in ends for outcome in self.ending(end, 0, tested)]
        if self.calls >= _MAX_CALLS:
            raise _GiveUpError
        self.calls += 1
        outcomes = self.run(script.body, state, tested=tested)
        self.calls -= 1
        return [Outcome(one.state, Signal.NEXT if one.signal is Signal.RETURN else one.signal) for one in outcomes]


def _is_excuse(node: ast.Node) -> bool:
    """Whether the right side of ``||`` does nothing but succeed."""
    if not isinstance(node, ast.Simple) or not node.words or node.redirects:
        return False
    words = [word.literal or UNKNOWN for word in node.words]
    return words[0] in ("true", ":", "echo", "printf") and kind_of(words) is Kind.ALWAYS_ZERO
