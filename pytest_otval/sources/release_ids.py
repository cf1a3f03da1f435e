"""Finding a pair's pass_to_pass ids: the new release's suite runs against both codes, each in its task's own image."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.images.model import Image, ImageRequest
from pytest_otval.images.store import Images
from pytest_otval.profile import load_profile
from pytest_otval.sandbox.base import DEFAULT_PATH, Bind, Command, ContainerSpec, Limits, Sandbox
from pytest_otval.sandbox.leftovers import OwnScratch
from pytest_otval.sandbox.probe import apptainer_maker, choose_flavour
from pytest_otval.sandbox.toolbox import ensure_toolbox
from pytest_otval.sources.files import Files, SourceError, publish_folder
from pytest_otval.sources.release_task import Inputs, task_files
from pytest_otval.sources.releases import Pair
from pytest_otval.workspace import Workspace, default_cluster, scratch

_RUNNER, _TALKING_RUNNER = "-m pytest -q ", "-m pytest -q -rpX "
"""With -rpX pytest names each passed test in a line of its own, and those expected to fail in lines of another kind."""
_PASSED = "PASSED "
_SECONDS = 900.0
_LIMITS = Limits(cpus=1, memory_mb=2048, storage_mb=2048)


class Laboratory:
    """A sandbox and an image store, open for several pairs."""

    def __init__(self, sandbox: Sandbox, images: Images, own: OwnScratch) -> None:
        self._sandbox = sandbox
        self._images = images
        self._own = own

    def pass_to_pass(self, inputs: Inputs) -> tuple[str, ...]:
        """Return the ids that pass on both codes, less those left out.

        Raises SourceError where the sandbox cannot run the suite, or fail_to_pass is not as pinned.
        """
        templates = {**inputs.templates, "test.sh": inputs.templates["test.sh"].replace(_RUNNER, _TALKING_RUNNER)}
        files = task_files(replace(inputs, pass_to_pass=(), templates=templates))
        with tempfile.TemporaryDirectory(dir=self._own.folder, prefix="ids-") as work:
            try:
                publish_folder(files, Path(work) / "task")
                image = self._images.ensure(ImageRequest(Path(work) / "task" / "environment", None, _SECONDS, _LIMITS))
                old = self._passed(image, files, Path(work) / "old", solve=False)
                new = self._passed(image, files, Path(work) / "new", solve=True)
            except Conclusion as conclusion:
                raise SourceError(str(conclusion)) from conclusion
        _check_fail_to_pass(inputs.pair, old, new)
        return tuple(sorted((old & new) - inputs.pair.left_out_ids))

    def _passed(self, image: Image, files: Files, work: Path, solve: bool) -> set[str]:
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
                solved = container.run(Command(["/solution/solve.sh"], log, env, seconds=_SECONDS))
                if not solved.ok:
                    raise SourceError(f"solve.sh failed: {log.read_text(errors='replace')[-200:]!r}")
            result = container.run(Command(["/tests/test.sh"], log, env, seconds=_SECONDS))
        if result.ended != "exit":
            raise SourceError(f"the suite on the {'new' if solve else 'old'} code ended by {result.ended}")
        return passed_ids(log.read_text(errors="replace"))


def passed_ids(output: str) -> set[str]:
    """Return the ids that pytest's ``-rp`` summary says passed."""
    return {line.removeprefix(_PASSED) for line in output.split("\n") if line.startswith(_PASSED)}


def _part(files: Files, part: str) -> Files:
    return {path.partition("/")[2]: file for path, file in files.items() if path.startswith(f"{part}/")}


def _check_fail_to_pass(pair: Pair, old: set[str], new: set[str]) -> None:
    for node_id in pair.graded_fail_to_pass:
        if node_id not in new:
            raise SourceError(f"{node_id} does not pass on the new code")
        if node_id in old:
            raise SourceError(f"{node_id} passes on the old code")


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
