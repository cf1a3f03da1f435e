"""Running shellcheck and hadolint over the texts of many tasks at once, with a cache.

Texts go to a linter as files of ours under names of ours, so no name, link or special file of a task is ever opened
by one. What a linter says of a text depends on nothing but the text and the linter's version.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pytest_otval.core import Conclusion

MAX_TEXT = 64 * 1024
"""Bytes of a text that linters look at; the time of shellcheck can grow faster than that of its text."""
_CHUNK = 100
"""Texts of one run."""
_SECONDS = 2
_SECONDS_A_TEXT = 0.1
"""Processor time a run may take, in all and for each text; usual ones take a hundredth of a second."""
_PATIENCE = 20
"""Times that on the clock, for a machine that does something else."""
_MEMORY = 2 << 30
"""Bytes that a run may allocate."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that a linter says."""

    code: str
    """``SC2077``, ``DL3021``."""
    line: int
    """1-based, of the text as it was given."""
    message: str


Remarks = tuple[Remark, ...]


@dataclass
class Linter:
    """One program. ``arguments`` stand in front of the files, ``suffix`` is what their names end with."""

    name: str
    arguments: tuple[str, ...]
    suffix: str
    cache: Path | None = None
    """A folder for answers, which several processes and machines may use at once."""
    _known: dict[str, Remarks] = field(default_factory=dict)
    _loaded: bool = False

    @cached_property
    def program(self) -> str:
        """The program, beside this Python or on PATH. Raises Conclusion ``missing-tool``."""
        beside = Path(sys.executable).with_name(self.name)
        found = str(beside) if beside.is_file() else shutil.which(self.name)
        if found is None:
            message = f"{self.name} is not on this machine: install the packages of pytest-otval again"
            raise Conclusion("missing-tool", message)
        return found

    @cached_property
    def version(self) -> str:
        """The version that the program tells."""
        done = subprocess.run([self.program, "--version"], capture_output=True, text=True, timeout=60, check=False)
        found = re.search(r"\d+(?:\.\d+)+", done.stdout)
        return found[0] if found else "unknown"

    def remarks(self, texts: Sequence[str]) -> list[Remarks | None]:
        """Return what the linter says of each text; None where it gave no answer within its limits."""
        self._load()
        digests = [hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest() for text in texts]
        new = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in self._known}
        pending = list(new.items())
        for start in range(0, len(pending), _CHUNK):
            answers = dict(self._answers(pending[start : start + _CHUNK]))
            self._known.update(answers)
            self._save(answers)
        return [self._known.get(digest) for digest in digests]

    def _answers(self, texts: Sequence[tuple[str, str]]) -> Iterator[tuple[str, Remarks]]:
        """Yield what it says of each text by digest; where a run fails, halves of it are tried."""
        said = self._run([text for _, text in texts])
        if said is not None:
            yield from zip((digest for digest, _ in texts), said, strict=True)
        elif len(texts) > 1:
            middle = len(texts) // 2
            yield from self._answers(texts[:middle])
            yield from self._answers(texts[middle:])

    def _run(self, texts: Sequence[str]) -> list[Remarks] | None:
        with tempfile.TemporaryDirectory(prefix="otval-lint-") as folder:
            paths = [Path(folder) / f"{index}{self.suffix}" for index in range(len(texts))]
            for path, text in zip(paths, texts, strict=True):
                path.write_text(text, encoding="utf-8", errors="surrogateescape")
            output = _limited([self.program, *self.arguments, *map(str, paths)], folder, len(texts))
            found = _comments(output) if output is not None else None
            if found is None:
                return None
            by_file: dict[str, list[Remark]] = {str(path): [] for path in paths}
            for comment in found:
                by_file.get(str(comment.get("file")), []).append(_remark(comment))
            return [tuple(by_file[str(path)]) for path in paths]

    @property
    def _label(self) -> str:
        arguments = hashlib.sha256("\0".join(self.arguments).encode()).hexdigest()[:8]
        return f"{self.name}-{self.version}-{arguments}"

    def _load(self) -> None:
        if self._loaded or self.cache is None:
            return
        self._loaded = True
        for path in sorted(self.cache.glob(f"{self._label}-*.jsonl")) if self.cache.is_dir() else ():
            for line in path.read_bytes().splitlines():
                try:
                    entry = json.loads(line)
                    remarks = tuple(Remark(str(code), int(row), str(text)) for code, row, text in entry["remarks"])
                    self._known[str(entry["digest"])] = remarks
                except (ValueError, TypeError, KeyError):
                    continue  # a line cut short by a crash

    def _save(self, answers: Mapping[str, Remarks]) -> None:
        if self.cache is None or not answers:
            return
        lines = [
            json.dumps({"digest": digest, "remarks": [[one.code, one.line, one.message] for one in remarks]})
            for digest, remarks in answers.items()
        ]
        self.cache.mkdir(parents=True, exist_ok=True)
        # One file a machine: appends of one machine's processes do not mix, those of two might on a network share.
        machine = re.sub(r"[^A-Za-z0-9.-]", "-", platform.node()) or "machine"
        with (self.cache / f"{self._label}-{machine}.jsonl").open("ab", buffering=0) as file:
            file.write(("\n".join(lines) + "\n").encode())


def _limited(command: Sequence[str], home: str, texts: int) -> str | None:
    """Return a program's output, or None where it reached a limit or was killed."""
    seconds = round(_SECONDS + _SECONDS_A_TEXT * texts)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # No settings of the user: neither files in a home folder nor options in variables.
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": home, "XDG_CONFIG_HOME": home},
        # A script may name files to include by paths relative to this.
        cwd="/",
    )
    try:
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (seconds, seconds))
        resource.prlimit(process.pid, resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    except ProcessLookupError:
        pass  # it ended already
    try:
        output, _ = process.communicate(timeout=seconds * _PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None
    return output.decode("utf-8", "replace") if process.returncode >= 0 else None


def _comments(output: str) -> list[Mapping[str, object]] | None:
    """Return the comments in the JSON of either linter; None where it is none."""
    try:
        found = json.loads(output)
    except ValueError:
        return None
    comments = found.get("comments") if isinstance(found, dict) else found
    return comments if isinstance(comments, list) else None


def _remark(comment: Mapping[str, object]) -> Remark:
    code = str(comment.get("code"))
    line = comment.get("line")
    return Remark(
        f"SC{code}" if code.isdigit() else code, line if isinstance(line, int) else 1, str(comment["message"])
    )


def shellcheck(codes: Iterable[str], cache: Path | None = None) -> Linter:
    """Return shellcheck, which looks for the given codes (``SC2077``) alone."""
    included = ",".join(sorted(codes))
    return Linter("shellcheck", ("--norc", "--format=json1", f"--include={included}"), ".sh", cache)


def hadolint(cache: Path | None = None) -> Linter:
    """Return hadolint without the user's settings."""
    return Linter("hadolint", ("--no-fail", "--format=json", "--config=/dev/null"), ".Dockerfile", cache)
