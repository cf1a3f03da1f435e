"""A dataset made from pairs of releases, as ``patch.py`` drives it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import pytest_otval.sources
from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.runtimes.named import NotNamedError, with_named_before
from pytest_otval.sources.cli import Entry
from pytest_otval.sources.fetch import Index, PackageIndex, fetch, is_fetched
from pytest_otval.sources.files import SourceError, publish_file, publish_folder, remove_folder
from pytest_otval.sources.release_task import Inputs, read_templates, task_files
from pytest_otval.sources.releases import Pair, load_releases, read_ids
from pytest_otval.workspace import Workspace


class ReleaseSource:
    """See ``cli.Source``. ``folder`` holds dataset.toml, releases.toml, ids/ and template/."""

    def __init__(self, folder: Path, workspace: Workspace, index: Index | None = None) -> None:
        self._folder = folder
        self._workspace = workspace
        self._index = index or PackageIndex()
        self._releases = load_releases(folder / "releases.toml")
        self._pairs = {pair.name: pair for pair in self._releases.pair}
        self._target = workspace.datasets / folder.name
        self._fetched = workspace.datasets / ".sources" / folder.name

    @property
    def name(self) -> str:
        """See ``cli.Source``."""
        return self._folder.name

    @property
    def entries(self) -> Sequence[Entry]:
        """See ``cli.Source``."""
        return [Entry(pair.name, pair.ci) for pair in self._releases.pair]

    @property
    def commands(self) -> Mapping[str, tuple[str, Callable[[Entry], str]]]:
        """See ``cli.Source``."""
        return {"ids": ("run both releases' code in a sandbox, and write the ids that pass on both", self.find_ids)}

    def find_ids(self, entry: Entry) -> str:
        """Write ids/TASK.txt from runs in the sandbox. Raises SourceError where they are not the pinned ones."""
        from pytest_otval.sources.release_ids import laboratory  # pulls the sandbox, which no other command needs

        pair = self._pairs[entry.name]
        self._require_fetched(pair)
        try:
            with laboratory(self._workspace) as lab:
                ids = lab.pass_to_pass(self._inputs(pair, ()))
        except Conclusion as conclusion:
            raise SourceError(str(conclusion)) from conclusion
        if fault := pair.why_not_the_pinned(ids):
            raise SourceError(f"{fault}: correct releases.toml, or name the odd ones in left_out")
        publish_file("".join(f"{one}\n" for one in ids).encode(), self._ids_file(pair))
        return f"{len(ids)} ids pass on both codes, as pinned"

    def fetch(self, entry: Entry) -> str:
        """See ``cli.Source``."""
        archives = self._releases.archives(self._pairs[entry.name])
        missing = [archive for archive in archives if not is_fetched(archive, self._fetched)]
        for archive in missing:
            fetch(archive, self._fetched, self._index)
        return f"fetched {len(missing)} files" if missing else "fetched before"

    def prepare(self, entry: Entry) -> str:
        """See ``cli.Source``."""
        pair = self._pairs[entry.name]
        pass_to_pass = read_ids(self._ids_file(pair))
        if fault := pair.why_not_the_pinned(pass_to_pass):
            raise SourceError(f"ids/{pair.name}.txt: {fault}: make it again with `patch.py ids --only {pair.name}`")
        self._require_fetched(pair)
        left_out = f", {len(pair.left_out)} ids left out" if pair.left_out else ""
        if self.status(entry)[1]:
            return f"prepared before{left_out}"
        publish_folder(task_files(self._inputs(pair, pass_to_pass)), self._target / "tasks" / pair.name)
        publish_file(self._inputs_digest(pair).encode(), self._stamp(pair))
        return f"prepared, {len(pair.graded_fail_to_pass)} to fix, {len(pass_to_pass)} to keep{left_out}"

    def status(self, entry: Entry) -> tuple[bool, bool]:
        """See ``cli.Source``."""
        pair = self._pairs[entry.name]
        fetched = all(is_fetched(archive, self._fetched) for archive in self._releases.archives(pair))
        there = (self._target / "tasks" / pair.name).is_dir()
        try:
            return fetched, there and self._stamp(pair).read_text() == self._inputs_digest(pair)
        except OSError:
            return fetched, False

    def finish(self) -> None:
        """See ``cli.Source``: dataset.toml with the runtimes that it named, and no tasks of earlier pairs."""
        target = self._target / "dataset.toml"
        try:
            publish_file(with_named_before((self._folder / "dataset.toml").read_bytes(), target), target)
        except NotNamedError as error:
            raise OtvalUsageError(f"{self._folder}: {error}") from None
        tasks = self._target / "tasks"
        for task in sorted(tasks.iterdir()) if tasks.is_dir() else ():
            if task.name not in self._pairs:
                remove_folder(task)

    def _require_fetched(self, pair: Pair) -> None:
        for archive in self._releases.archives(pair):
            if not is_fetched(archive, self._fetched):
                raise SourceError(f"{archive.file} is not fetched: run `patch.py fetch --only {pair.name}`")

    @cached_property
    def _templates(self) -> Mapping[str, str]:
        return read_templates(self._folder / "template")

    def _inputs(self, pair: Pair, pass_to_pass: Sequence[str]) -> Inputs:
        wheels = self._releases.wheel_archives(pair)
        return Inputs(pair, pass_to_pass, wheels, self._fetched, self._templates)

    def _ids_file(self, pair: Pair) -> Path:
        return self._folder / "ids" / f"{pair.name}.txt"

    def _stamp(self, pair: Pair) -> Path:
        return self._fetched / "prepared" / pair.name

    def _inputs_digest(self, pair: Pair) -> str:
        """Digest of all that decides the task's files: the pair, its archives by checksum, the ids, templates, code."""
        digest = hashlib.sha256(pair.model_dump_json().encode())
        for archive in self._releases.archives(pair):
            digest.update(archive.sha256.encode())
        digest.update(self._ids_file(pair).read_bytes())
        for name in sorted(self._templates):
            digest.update(self._templates[name].encode())
        digest.update(_code_digest())
        return digest.hexdigest()


def _code_digest() -> bytes:
    digest = hashlib.sha256()
    for folder in pytest_otval.sources.__path__:
        for module in sorted(Path(folder).glob("*.py")):
            digest.update(module.read_bytes())
    return digest.digest()
