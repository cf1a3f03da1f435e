"""Between agent and verifier: what goes from the layer, and what is carried over.

The host never follows a path inside the layer: it looks at names at its top alone. Where something is carried over,
programs of ours do the rest, in a container of their own.
"""

from __future__ import annotations

import shlex
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pytest_otval.core import RESTORING, Conclusion, Isolation
from pytest_otval.sandbox.base import TOOLBOX, Command, Container
from pytest_otval.task.keep import keep_of
from pytest_otval.task.load import Step
from pytest_otval.task.model import TaskConfig
from pytest_otval.task.named import instruction_text, paths_named
from pytest_otval.trial.agent_phase import INBOX, require_zero
from pytest_otval.trial.files import below_roots, keep_artifacts, sanitise
from pytest_otval.trial.layer import Layer, require_end
from pytest_otval.trial.outcome import step_folder
from pytest_otval.trial.restoring import Restoring, restoring_of

HAND_OVER_SECONDS = 600
ARTIFACTS = "/logs/artifacts"
"""Carried over beside what task.toml declares; a shared verifier finds it where the agent left it."""

_GRADERS = ("tests", "logs", "solution", "setup_files", ".otval-runtime")
"""What an agent may leave at the top that only graders may own."""
MOST_BYTES = 16 << 30
"""Of what is carried over: a file without content can say that it is larger than any disk."""
_HOMES = PurePosixPath("/home")

_CLEAR = f"""
B={TOOLBOX}/busybox
$B rm -rf /.otval-artifacts
test -d {ARTIFACTS} -a ! -L {ARTIFACTS} -a ! -L /logs && $B mv {ARTIFACTS} /.otval-artifacts
$B rm -rf {" ".join(f"/{name}" for name in _GRADERS)}
$B mkdir -p /tests /logs/agent /logs/verifier
$B mv /.otval-artifacts {ARTIFACTS} 2>/dev/null || $B mkdir {ARTIFACTS}
"""

_MAKE_FOLDERS = f"{TOOLBOX}/busybox mkdir -p /logs/agent {ARTIFACTS}"


@dataclass(frozen=True, slots=True)
class Handed:
    """What a verifier's container unpacks before it grades."""

    archive: Path | None
    """None where nothing is carried over."""
    before: Sequence[str] = ()
    """A shell command that makes room, and its arguments; empty for none."""

    def unpack(self, container: Container, folder: Path) -> None:
        """Unpack it in a container that sees it in its inbox. Raises Conclusion ``tampered``."""
        if self.before:
            command = Command(_shell(*self.before), folder / "room.txt")
            require_end(container.run(limited(command)), "the hand-over", "tampered")
        if self.archive is not None:
            extract(container, f"{INBOX}/{self.archive.name}", "/", folder)


class HandOver:
    """The hand-overs of one trial."""

    def __init__(self, config: TaskConfig, layer: Layer, evidence: Path, isolation: Isolation) -> None:
        self._layer = layer
        self._evidence = evidence
        self._isolation = isolation
        self._metadata = config.metadata
        self._workdir = config.environment.workdir or layer.image.config.workdir

    def run(self, step: Step, folder: Path) -> Handed | None:
        """Clear what only graders may own from the layer, and put back what the isolation level does.

        Returns what the verifier's container is to unpack, if anything: the artifacts for a separate verifier, or what
        is kept for a shared one. Raises Conclusion.
        """
        if not self._layer.written:
            return None
        raw, clean = folder / "handed.raw.tar", folder / "handed.tar"
        if step.verifier_mode == "separate":
            self._clear_inside(raw, folder, [self._collect_script(step)])
            self._clean_artifacts(step, raw, clean)
            return Handed(clean)
        restoring = self._restoring(step)
        if restoring is not None and restoring.carried:
            self._clear_inside(raw, folder, restoring.collecting)
            restoring.clean(raw, clean)
            handed: Handed | None = Handed(clean, restoring.removing)
        else:
            handed = self._clear(raw, folder)
        if restoring is not None:
            self._layer.restore(restoring)
        return handed

    def _clear(self, raw: Path, folder: Path) -> Handed | None:
        """Clear a layer of which nothing is carried over; artifacts that are there need a container for it."""
        if self._layer.holds(ARTIFACTS):
            self._clear_inside(raw, folder, [])
            return None
        self._layer.clear(_GRADERS)
        return Handed(None, [_MAKE_FOLDERS])

    def _clear_inside(self, raw: Path, folder: Path, collecting: Sequence[str]) -> None:
        with self._layer.container("none", []) as container, raw.open("wb") as stream:
            if collecting:
                script, *words = collecting
                argv = _shell(f"({script}) | {TOOLBOX}/busybox head -c {MOST_BYTES + 1}", *words)
                command = Command(argv, folder / "handed.txt", stdout=stream.fileno())
                with self._layer.telling("tampered", "what is carried over cannot be written"):
                    require_end(container.run(limited(command)), "taking what is handed over", "tampered")
                if raw.stat().st_size > MOST_BYTES:
                    raise Conclusion("tampered", f"more than {MOST_BYTES >> 30} GiB would be carried over")
            clearing = Command(_shell(_CLEAR), folder / "hand-over.txt")
            require_end(container.run(limited(clearing)), "the hand-over", "tampered")

    def _restoring(self, step: Step) -> Restoring | None:
        if self._isolation not in RESTORING:
            return None
        try:
            keep = keep_of(self._metadata)
        except ValueError as error:
            raise Conclusion("bad-task", f"[metadata.otval] keep: {error}") from None
        # A home is named in passing; what its shells read there is not the agent's to change.
        named = [path for path in paths_named(instruction_text(step)) if PurePosixPath(path).parent != _HOMES]
        allowed = [self._workdir, *self._sources(step), *named]
        return restoring_of(self._isolation, self._layer.image.files, allowed, keep)

    def _clean_artifacts(self, step: Step, raw: Path, clean: Path) -> None:
        try:
            sanitise(raw, clean, below_roots(self._sources(step)))
        except tarfile.TarError as error:
            raise Conclusion("tampered", f"the artifacts are no archive: {error}") from None
        keep_artifacts(clean, step_folder(self._evidence, step.name) / "artifacts")

    def _sources(self, step: Step) -> list[str]:
        """Absolute paths of what is carried over."""
        declared = [str(PurePosixPath(self._workdir, artifact.source)) for artifact in step.artifacts]
        return [ARTIFACTS, *(path.rstrip("/") for path in declared)]

    def _collect_script(self, step: Step) -> str:
        names = " ".join(shlex.quote(path[1:]) for path in self._sources(step))
        return (
            f'cd /; for path in {names}; do test -e "$path" && set -- "$@" "$path"; done; '
            f'test $# = 0 || exec {TOOLBOX}/busybox tar -c "$@"'
        )


def _shell(script: str, *words: str) -> list[str]:
    return [f"{TOOLBOX}/sh", "-c", script, "sh", *words]


def limited(command: Command) -> Command:
    """Return a command of ours with our PATH and limit."""
    return Command(command.argv, command.log, {"PATH": TOOLBOX}, seconds=HAND_OVER_SECONDS, stdout=command.stdout)


def extract(container: Container, archive: str, target: str, folder: Path) -> None:
    """Unpack an archive that a container sees. Raises Conclusion ``tampered``."""
    argv = [f"{TOOLBOX}/busybox", "tar", "-x", "-f", archive, "-C", target]
    result = container.run(limited(Command(argv, folder / "extract.txt")))
    require_end(result, "unpacking", "tampered")
    require_zero(result, "unpacking", "tampered")
