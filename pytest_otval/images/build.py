"""Running the steps of a plan in one container, and packing what they made."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.core import Conclusion, Network
from pytest_otval.images.failures import container_failure, last_lines, nearly_full, scratch_full
from pytest_otval.images.model import Files
from pytest_otval.images.result import pack_changes, pack_whole
from pytest_otval.images.running import FOLDER, ContainerDeadError, StepRunner, keep_logs, said, tail
from pytest_otval.images.site import SiteFiles
from pytest_otval.images.steps import BUILD_FOLDER, BuildPlan, Step
from pytest_otval.profile import BuildSection
from pytest_otval.sandbox.base import (
    Bind,
    CommandResult,
    ContainerSpec,
    Limits,
    NoStartError,
    Sandbox,
)


@dataclass(frozen=True, slots=True)
class Built:
    """What a build took, and the end of what it said."""

    seconds: float
    log: str
    is_layer: bool = False
    """Whether the file holds what differs from the image below alone."""


class Builder:
    """Builds images, each in a container and a scratch folder of its own."""

    def __init__(self, sandbox: Sandbox, site: BuildSection, scratch: Path, network: Network = "public") -> None:
        """``scratch`` is node-local; ``network`` is what RUN gets."""
        self._sandbox = sandbox
        self._site = site
        self._scratch = scratch
        self._network = network

    def build(
        self,
        plan: BuildPlan,
        base: Files,
        target: Path,
        seconds: float,
        limits: Limits,
        origins: Mapping[str, Files] | None = None,
        log: Path | None = None,
        as_layer: bool = False,
    ) -> Built:
        """Run a plan's steps over the files of an image and pack the result as ``target``.

        ``as_layer`` packs what differs from the files below, if that can be told.

        ``seconds`` is the limit of all steps together; ``origins`` are the files of the images that COPY --from reads,
        by key; what the steps say is appended to ``log``. Raises Conclusion: ``build-failed``, ``build-timeout``,
        ``memory-limit``, ``storage-limit``, ``network-unreachable``, ``host-disk-full``, ``no-start``, ``killed``.
        """
        work = Path(tempfile.mkdtemp(dir=self._scratch, prefix="build-"))
        try:
            overlay = work / "overlay"
            began, since = time.monotonic(), int(time.time())
            if plan.steps:
                self._run_steps(plan, base, origins or {}, work, overlay, seconds, limits)
            spent = time.monotonic() - began
            is_layer = as_layer and pack_changes(self._sandbox, base, overlay, since, work, target)
            if not is_layer:
                pack_whole(self._sandbox, base, overlay, work, target)
            return Built(spent, said(plan, work), is_layer)
        except NoStartError as error:
            if nearly_full(self._scratch):
                raise scratch_full(self._scratch) from None
            raise Conclusion("no-start", f"the container of a build did not start: {error}") from None
        finally:
            if log is not None:
                keep_logs(plan, work, log)
            self._sandbox.remove(work)

    def _run_steps(
        self,
        plan: BuildPlan,
        base: Files,
        origins: Mapping[str, Files],
        work: Path,
        overlay: Path,
        seconds: float,
        limits: Limits,
    ) -> None:
        folder = work / FOLDER
        folder.mkdir()
        # For every user of the container, whatever the umask here.
        folder.chmod(0o755)
        apt = folder / "apt.conf"
        # apt cannot become its user _apt where only root is mapped.
        apt.write_text('APT::Sandbox::User "root";\n')
        apt.chmod(0o644)
        site = SiteFiles(self._site.files(), folder)
        spec = ContainerSpec(
            base,
            overlay=overlay,
            binds=[Bind(folder, BUILD_FOLDER)],
            network=self._network,
            limits=limits,
            for_build=True,
        )
        with self._sandbox.open(spec) as container:
            deadline = time.monotonic() + seconds
            run = StepRunner(plan, self._sandbox, container, origins, work, deadline, self._network)
            site_env = {**self._site.environment(), "APT_CONFIG": f"{BUILD_FOLDER}/apt.conf"}
            step = plan.steps[0]
            try:
                run.ours(site.mount_argv())
                for number, step in enumerate(plan.steps):
                    result = run.step(step, number, site_env)
                    if not result.ok:
                        raise self._failure(plan, step, result, seconds)
                run.ours(site.unmount_argv())
            except ContainerDeadError as dead:
                raise self._failure(plan, step, dead.result, seconds) from None

    def _failure(self, plan: BuildPlan, step: Step, result: CommandResult, seconds: float) -> Conclusion:
        text = tail(result.log)
        where = f"{plan.file}:{step.line}"
        log = last_lines(text)
        kind = step.text.split(maxsplit=1)[0].upper()
        if result.ended == "timeout":
            return Conclusion("build-timeout", f"{where}: {kind}: not built within {seconds:g} s", log)
        failure = container_failure(result.ended, text, f"{where}: {kind}", self._scratch)
        if failure is not None:
            return failure
        last = last_lines(text, 1)
        status = f"{kind} ended with status {result.status}"
        return Conclusion("build-failed", f"{where}: {status}{': ' + last if last else ''}", log)
