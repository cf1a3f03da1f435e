"""One test script, hardened: what runs its pytest, from which files, and with what around it."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from pytest_otval.checks.bash_syntax import shell_error
from pytest_otval.checks.verify_walk import UNKNOWN as UNKNOWN_PATH
from pytest_otval.checks.verify_walk import WORKDIR, Run, walk
from pytest_otval.harden.environments import activation_of
from pytest_otval.harden.facts import Facts
from pytest_otval.harden.preparing import GIVEN, guard
from pytest_otval.harden.pytest_call import Call, call_of, plugin_of
from pytest_otval.harden.restoring import restored
from pytest_otval.harden.tree import (
    PLAIN,
    Command,
    Edits,
    Word,
    commands,
    indent_of,
    is_guarded,
    statement_of,
    to_bytes,
    to_text,
)
from pytest_otval.task.bash import bash_tree

_SHELLS = ("bash", "sh", "dash")
_LOGIN_SHEBANG = re.compile(rb"\A(#![^\n]*/(?:env +-S +)?(?:ba|da)?sh)((?: +(?:-l|-i|-li|-il|--login))+)(?=[ \n])")
_RUNS_TEXT = re.compile(r"-[a-z]*c")
_WITH_VALUE = re.compile(r"[+-][a-z]*[oO]|--rcfile|--init-file")
_GAP = re.compile(rb"(?:[ \t]|\\\n)+\Z")
"""What stands between two words."""
_OWN_CONFIG = ("-c", "--config-file", "--rootdir", "--confcutdir")


Given = Literal["runtime", "image", "unknown"]
"""What OT_PYTHON may be: the Python of a runtime that has pytest; the image's; of another runtime, if that has one."""


class NotUnderstoodError(Exception):
    """Nothing is proposed for a script; the text says why, with the line."""


@dataclass(frozen=True, slots=True)
class Hardened:
    """What becomes of a script."""

    content: bytes
    needs_runtime: bool
    """Its pytest runs in the Python of the verifier's runtime."""
    notes: tuple[str, ...] = ()
    """What stays as it is, and why."""


def hardened(raw: bytes, facts: Facts, given: Given = "runtime") -> Hardened | None:
    """Return a script as it should be; None where no pytest is started in it. Raises NotUnderstoodError."""
    crlf = b"\r\n" in raw
    source = raw.replace(b"\r\n", b"\n")
    if b"\r" in source or (crlf and raw.count(b"\n") != raw.count(b"\r\n")):
        raise NotUnderstoodError("it has line ends of several kinds")
    work = _Work(source, facts, given)
    if not work.begin():
        return None
    work.harden()
    content = work.edits.applied(source)
    error = shell_error(to_text(content).encode("utf-8", "replace").decode())
    if bash_tree(content) is None or (error is not None):
        raise NotUnderstoodError("what it would become is no shell script")
    return Hardened(content.replace(b"\n", b"\r\n") if crlf else content, work.uses_runtime, tuple(work.notes))


@dataclass(slots=True)
class _Work:
    """A script while it is looked at."""

    source: bytes
    facts: Facts
    given: Given
    folder: str = WORKDIR
    """Where it is started."""
    edits: Edits = field(default_factory=Edits)
    notes: list[str] = field(default_factory=list)
    uses_runtime: bool = False
    environment: str = ""
    """Folder of the environment that is active."""
    conda: str = ""
    found: list[tuple[Command, Call]] = field(default_factory=list)
    all: list[Command] = field(default_factory=list)
    runs: dict[int, list[Run]] = field(default_factory=lambda: defaultdict(list))

    @property
    def text(self) -> str:
        return self.source.decode("utf-8", "replace")

    def begin(self) -> bool:
        """Read the script; return whether it starts pytest."""
        root = bash_tree(self.source)
        if root is None:
            raise NotUnderstoodError("its syntax is not understood")
        self.all = list(commands(root))
        inner = False
        for command in self.all:
            if (given := _given_text(command)) is not None:
                inner = self._inner(given.text).begin() or inner
                continue
            call = call_of(command)
            if call is None or (call.form != "done" and is_guarded(command.node)):
                continue
            if call.form == "unclear":
                raise NotUnderstoodError(f"line {command.line}: how this starts pytest cannot be told")
            self.found.append((command, call))
        done = walk(self.text, self.folder)
        for run in done.runs if done is not None else ():
            self.runs[run.line].append(run)
        return bool(self.found) or inner

    def harden(self) -> None:
        """Make all edits."""
        runtime = self._wants_runtime()
        for command in self.all:
            activation = activation_of(command, self.conda) if not is_guarded(command.node) else None
            if isinstance(activation, str):
                raise NotUnderstoodError(f"line {command.line}: {activation}")
            if activation is not None:
                self.environment, self.conda = activation.home or self.environment, activation.conda or self.conda
                self._put(command, activation.text)
            for one, call in self.found:
                if one is command and call.form != "done":
                    self._pytest(command, call, runtime)
                elif one is command and "OT_PYTHON" in command.source:
                    self.uses_runtime = self.uses_runtime or runtime
            self._login(command)
            self._restore(command)
        if self.uses_runtime:
            root = bash_tree(self.source)
            assert root is not None
            guard(root, self.edits, self.facts.runtime.distributions)
        login = _LOGIN_SHEBANG.match(self.source)
        if login is not None:
            self.edits.replace(login.start(2), login.end(2), "")

    def _wants_runtime(self) -> bool:
        """Whether pytest can run in the runtime's Python."""
        uv = [command for command, call in self.found if call.form == "uv"]
        missing = sorted(self.facts.packages)
        if missing and uv:
            what = f"line {uv[0].line}: uv brings what the tests import ({', '.join(missing[:3])})"
            raise NotUnderstoodError(f"{what}: make a runtime of it (docs/runtimes.md)")
        plugins = [text for one, call in self.found for text in one.texts[call.last + 1 :] if self._is_foreign(text)]
        if plugins and uv:
            what = f"line {uv[0].line}: uv brings the plugin that has {plugins[0].partition('=')[0]}"
            raise NotUnderstoodError(f"{what}: make a runtime of it (docs/runtimes.md)")
        if uv and self.given != "runtime":
            raise NotUnderstoodError(f"line {uv[0].line}: uv brings pytest, and there is to be no runtime in its place")
        wanted = self.given == "runtime" and not missing and not plugins
        if missing and any(call.form != "done" for _, call in self.found):
            self.notes.append(f"the tests import {', '.join(missing[:3])}: pytest stays in the Python that has it")
        return wanted

    def _is_foreign(self, text: str) -> bool:
        """Whether an option of pytest is one of a plugin that the runtime does not have."""
        plugin = plugin_of(text)
        return plugin is not None and plugin not in self.facts.runtime.modules

    def _put(self, command: Command, text: str) -> None:
        self.edits.replace(command.node.start_byte, command.node.end_byte, text)

    def _pytest(self, command: Command, call: Call, runtime: bool) -> None:
        runs = [run for run in self.runs[command.line] if run.how == "tests"]
        if foreign := next(filter(self._is_unknown, runs), None):
            self.notes.append(
                f"line {command.line}: {foreign.path} is the agent's to change, and no file of tests/: runs as before"
            )
            return
        options = self._options(command, call, runs)
        start, end = command.words[call.first].start, command.words[call.last].end
        self._deliver(command, runs)
        if call.form == "uv":
            self.uses_runtime = True
            before = to_text(self.source[command.node.start_byte : start])
            after = to_text(self.source[end : command.node.end_byte])
            given = f'{before}"$OT_PYTHON" -I -m pytest{options}{after}'
            self._put(command, f"{GIVEN}{given}; else {command.source}; fi")
            return
        environment = call.environment or self.environment
        python = f"{environment}/bin/python3" if environment else call.python.strip("\"'")
        self.uses_runtime = self.uses_runtime or runtime
        of_environment = environment and not runtime
        program = f'"{python}"' if of_environment or self.given == "unknown" else f'"${{OT_PYTHON:-{python}}}"'
        self.edits.replace(start, end, f"{program} -I -m pytest{options}")

    def _is_unknown(self, run: Run) -> bool:
        """Whether tests are the agent's work, which may import whatever its Python has."""
        return run.path.endswith(".py") and not run.made and self.facts.file_of(run.path) is None

    def _options(self, command: Command, call: Call, runs: list[Run]) -> str:
        """Return what keeps imports of the product as they were, and files of the agent's away."""
        given = {text.split("=")[0] for text in command.texts[call.last + 1 :]}
        options = self._module_path(command, call)
        places = [run.path for run in runs]
        if given & {*_OWN_CONFIG}:
            return options
        if places and all(_in_tests(place) for place in places):
            if not self.facts.has_ini:
                folders = [place if not place.endswith(".py") else posixpath.dirname(place) for place in places]
                top = posixpath.commonpath(folders)
                options += f" -c /dev/null --rootdir={top}" if PLAIN.fullmatch(top) else ""
        elif len(runs) == 1 and not self.facts.may_be_configured:
            options += "" if "--noconftest" in given else " --noconftest"
            if not self.facts.has_ini and (folder := _folder_text(runs[0])):
                options += f" -c /dev/null --rootdir={folder}"
        return options

    def _module_path(self, command: Command, call: Call) -> str:
        """Return the option that lets tests import what ``python -m`` and PYTHONPATH let them import."""
        paths = ["$PWD"] if call.form == "module" and self.facts.foreign else []
        if self.facts.foreign and self.facts.has_pythonpath(self.text):
            if b"bash" not in self.source.split(b"\n", 1)[0]:
                raise NotUnderstoodError(
                    f"line {command.line}: its modules come by PYTHONPATH, and it is no bash script"
                )
            paths.append("${PYTHONPATH//:/ }")
        if not paths:
            return ""
        if self.facts.ini_has_pythonpath or any(text.startswith("pythonpath=") for text in command.texts):
            raise NotUnderstoodError(
                f"line {command.line}: pytest's own pythonpath is set, and it needs another one, too"
            )
        return f' -o pythonpath="{" ".join(paths)}"'

    def _deliver(self, command: Command, runs: list[Run]) -> None:
        """Copy tests that lie elsewhere out of /tests, just before they are used."""
        for run in runs:
            if _in_tests(run.path) or run.made or run.path == WORKDIR:
                continue
            name, target = self.facts.file_of(run.path), _target_text(run)
            if name is None or not PLAIN.fullmatch(name) or not target or not run.path.endswith(".py"):
                self.notes.append(f"line {command.line}: {run.path} is the agent's to change, and no file of tests/")
                continue
            at = statement_of(command.node).start_byte
            self.edits.insert(at, f"cp /tests/{name} {target}\n{indent_of(self.source, at)}")

    def _login(self, command: Command) -> None:
        """Let shells read no files at their start, and harden what they are given to run."""
        if posixpath.basename(command.texts[0]) not in _SHELLS:
            return
        for at in _options(command):
            word = command.words[at]
            if word.text in ("--login", "-l", "-i", "-li", "-il"):
                gap = _GAP.search(self.source, command.words[at - 1].end, word.start)
                self.edits.replace(word.start if gap is None else gap.start(), word.end, "")
            elif re.fullmatch(r"-[a-z]*[li][a-z]*", word.text):
                self.edits.replace(word.start, word.end, re.sub("[li]", "", word.text))
        given = _given_text(command)
        if given is None:
            return
        work = self._inner(given.text)
        if work.begin():
            work.environment, work.conda = self.environment, self.conda
            work.harden()
            self.edits.replace(given.start, given.end, f"'{to_text(work.edits.applied(work.source))}'")
            self.notes += work.notes
            self.uses_runtime = self.uses_runtime or work.uses_runtime

    def _restore(self, command: Command) -> None:
        """Take tests from /tests that the script takes from the agent's repository."""
        if command.texts[0] != "git" or re.search(r"\bgit\s+apply\b|\bpatch\b", self.text):
            return
        found = restored(command, self.facts)
        if found is None:
            return
        if found.text:
            self._put(command, found.text)
        else:
            self.notes.append(f"line {command.line}: git takes {found.missing} from the agent's repository")

    def _inner(self, text: str) -> _Work:
        """Return the work on a text that a shell is given to run."""
        return _Work(to_bytes(text), self.facts, self.given, UNKNOWN_PATH)


def _options(command: Command) -> Iterator[int]:
    """Yield where the options of a shell stand, in front of what it is to run."""
    at = 1
    while at < len(command.words) and command.words[at].text.startswith(("-", "+")):
        yield at
        at += 2 if _WITH_VALUE.fullmatch(command.words[at].text) else 1


def _given_text(command: Command) -> Word | None:
    """Return the text in single quotes that a shell is given to run, if a command is one."""
    if not command.texts or posixpath.basename(command.texts[0]) not in _SHELLS:
        return None
    for option in _options(command):
        following = command.words[option + 1 : option + 2]
        if _RUNS_TEXT.fullmatch(command.words[option].text) and following and following[0].source[:1] == "'":
            return following[0]
    return None


def _in_tests(path: str) -> bool:
    return f"{path}/".startswith("/tests/")


def _target_text(run: Run) -> str:
    """Return how a script can write the path of a run; empty where that is not known."""
    path = run.path
    if not PLAIN.fullmatch(path) or (not path.startswith("/") and run.folder != WORKDIR):
        return ""
    return path


def _folder_text(run: Run) -> str:
    target = _target_text(run)
    if not target:
        return ""
    folder = posixpath.dirname(target) if target.endswith(".py") else target
    return folder if folder.startswith("/") else f'"$PWD/{folder}"'.replace("/./", "/").replace('/."', '"')
