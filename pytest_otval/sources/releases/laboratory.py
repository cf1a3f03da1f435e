"""Which tests pass on which code: a new release's suite runs against both codes, each in its task's own image."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_otval.core import Conclusion, printable
from pytest_otval.images.model import Image, ImageRequest
from pytest_otval.images.store import Images
from pytest_otval.profile import load_profile
from pytest_otval.sandbox.base import DEFAULT_PATH, Bind, Command, ContainerSpec, Limits, Sandbox
from pytest_otval.sandbox.leftovers import OwnScratch
from pytest_otval.sandbox.probe import apptainer_maker, choose_flavour
from pytest_otval.sandbox.toolbox import ensure_toolbox
from pytest_otval.sources.files import Files, SourceError, publish_folder
from pytest_otval.sources.releases.task import Inputs, task_files
from pytest_otval.workspace import Workspace, default_cluster, scratch

_RUNNER, _TALKING_RUNNER = "-m pytest -q ", "-m pytest -q -rpX "
"""With -rpX pytest names each passed test in a line of its own, and those expected to fail in lines of another kind."""
_PASSED = "PASSED "
_SECONDS = 900.0
_LIMITS = Limits(cpus=1, memory_mb=2048, storage_mb=2048)
_NO_NETWORK = re.compile(
    r"^E .*(?:Temporary failure in name resolution|Name or service not known|Network is unreachable"
    r"|No address associated with hostname|getaddrinfo failed|Failed to resolve|Could not resolve host).*$",
    re.MULTILINE,
)
"""A line of a failure's report that says what a test without a network meets."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a suite."""

    passed: frozenset[str]
    """Ids of the tests that plainly passed."""
    output: str

    @property
    def wants_network(self) -> str:
        """The first line that says that a test failed for want of a network, or ""."""
        found = _NO_NETWORK.search(self.output)
        return printable(" ".join(found[0].removeprefix("E").split()))[:200] if found else ""


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of a new release's suite on both codes, at least one each."""

    old: tuple[Run, ...]
    new: tuple[Run, ...]

    def sort(self) -> SortedIds:
        """Tell ids apart by where they pass; those that never pass on the new code are left out."""
        ever_old, always_old = _ever(self.old), _always(self.old)
        ever_new, always_new = _ever(self.new), _always(self.new)
        flaky = (ever_new - always_new) | ((ever_old - always_old) & ever_new)
        steady = always_new - flaky
        groups = (steady - ever_old, steady & always_old, flaky - ever_old, flaky & ever_old)
        return SortedIds(*(tuple(sorted(ids)) for ids in groups))


@dataclass(frozen=True, slots=True)
class SortedIds:
    """Test ids, each group sorted."""

    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    flaky_fail_to_pass: tuple[str, ...]
    """Never passed on the old code, and whose outcome on the new one differs between repetitions."""
    flaky_pass_to_pass: tuple[str, ...]
    """Passed on both codes, not always."""

    @property
    def flaky(self) -> tuple[str, ...]:
        """All whose outcome on one of the codes differs between repetitions."""
        return tuple(sorted((*self.flaky_fail_to_pass, *self.flaky_pass_to_pass)))


def _ever(runs: Sequence[Run]) -> frozenset[str]:
    return frozenset().union(*(run.passed for run in runs))


def _always(runs: Sequence[Run]) -> frozenset[str]:
    return frozenset.intersection(*(run.passed for run in runs))


class Laboratory:
    """A sandbox and an image store, open for several pairs."""

    def __init__(self, sandbox: Sandbox, images: Images, own: OwnScratch) -> None:
        self._sandbox = sandbox
        self._images = images
        self._own = own

    def run(self, inputs: Inputs, repeats: int, seconds: float = _SECONDS) -> Runs:
        """Run a pair's suite on both codes, in turn, each so often and within so many seconds, without a network.

        Its ids are not looked at. Raises SourceError where the sandbox cannot run the suite to its end.
        """
        templates = {**inputs.templates, "test.sh": inputs.templates["test.sh"].replace(_RUNNER, _TALKING_RUNNER)}
        files = task_files(replace(inputs, pass_to_pass=(), templates=templates))
        old, new = [], []
        with tempfile.TemporaryDirectory(dir=self._own.folder, prefix="ids-") as work:
            try:
                publish_folder(files, Path(work) / "task")
                image = self._images.ensure(ImageRequest(Path(work) / "task" / "environment", None, _SECONDS, _LIMITS))
                for number in range(repeats):
                    old.append(self._run(image, files, Path(work) / f"old-{number}", solve=False, seconds=seconds))
                    new.append(self._run(image, files, Path(work) / f"new-{number}", solve=True, seconds=seconds))
            except Conclusion as conclusion:
                raise SourceError(str(conclusion)) from conclusion
        return Runs(tuple(old), tuple(new))

    def _run(self, image: Image, files: Files, work: Path, solve: bool, seconds: float) -> Run:
        binds = []
        for part in ("tests", "solution"):
            publish_folder(_part(files, part), work / part)
            binds.append(Bind(work / part, f"/{part}"))
        (work / "verifier").mkdir()
        binds.append(Bind(work / "verifier", "/logs/verifier"))
        env = {"PATH": DEFAULT_PATH, **image.config.env}
        log = work / "log"
        with self._sandbox.open(ContainerSpec(image.files, binds=binds, limits=_LIMITS)) as container:
            if solve:
                solved = container.run(Command(["/solution/solve.sh"], log, env, seconds=seconds))
                if not solved.ok:
                    raise SourceError(f"solve.sh failed: {log.read_text(errors='replace')[-200:]!r}")
            result = container.run(Command(["/tests/test.sh"], log, env, seconds=seconds))
        if result.ended != "exit":
            code, limit = "new" if solve else "old", f" of {seconds:g} s" if result.ended == "timeout" else ""
            raise SourceError(f"the suite on the {code} code ended by {result.ended}{limit}")
        output = log.read_text(errors="replace")
        return Run(passed_ids(output), output)


def passed_ids(output: str) -> frozenset[str]:
    """Return the ids that pytest's ``-rp`` summary says passed."""
    return frozenset(line.removeprefix(_PASSED) for line in output.split("\n") if line.startswith(_PASSED))


def _part(files: Files, part: str) -> Files:
    return {path.partition("/")[2]: file for path, file in files.items() if path.startswith(f"{part}/")}


@contextmanager
def laboratory(workspace: Workspace) -> Iterator[Laboratory]:
    """Open a laboratory in the sandbox flavour that works here, with the profile of ``$OT_CLUSTER`` (else local).

    Raises OtvalUsageError for a wrong profile and Conclusion where no sandbox starts.
    """
    profile = load_profile(default_cluster())
    toolbox = ensure_toolbox(workspace.root / "runtimes")
    own = OwnScratch(scratch())
    make = apptainer_maker(toolbox, own, profile.network.public)
    try:
        sandbox = make(choose_flavour(profile.sandbox.flavours, make, toolbox, own))
        with tempfile.TemporaryDirectory(dir=own.folder, prefix="images-") as work:
            images = Images(workspace.images, sandbox, profile, scratch=Path(work), run=Path(work))
            yield Laboratory(sandbox, images, own)
    finally:
        own.close()
