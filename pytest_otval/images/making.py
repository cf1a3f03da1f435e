"""Making the packed file of a plan whose images below are there, and publishing it in the store."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.images.bases import Base, file_digest
from pytest_otval.images.bootstrap import bootstrap
from pytest_otval.images.build import Builder, Built
from pytest_otval.images.layer import NotALayerError, write_layer
from pytest_otval.images.locks import half_name
from pytest_otval.images.lower import Lower
from pytest_otval.images.model import Files
from pytest_otval.images.pack import PackError
from pytest_otval.images.packages import Packages, installed
from pytest_otval.images.record import Record, image_path, usable_record, write_record
from pytest_otval.images.steps import BuildPlan, base_plan
from pytest_otval.profile import Profile
from pytest_otval.sandbox.admission import Admission, Need
from pytest_otval.sandbox.base import Limits, Sandbox
from pytest_otval.sandbox.limits import pinned
from pytest_otval.task.packed.unpack import DamagedError

Pull = Callable[[str, Path], None]
"""Writes the image of ``HOST/PATH@sha256:DIGEST`` to a ``.sif`` file; raises Conclusion."""


MAX_LAYERS = 3
"""Over a whole root file system: each costs every start of a container some milliseconds."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What a build stands on."""

    files: Files
    record: Record | None
    """None for a file that is not of the store."""


class Maker:
    """Makes images in the store, one call an image."""

    def __init__(
        self,
        store: Path,
        sandbox: Sandbox,
        profile: Profile,
        scratch: Path,
        offline: bool,
        pull: Pull | None,
        admission: Admission | None,
    ) -> None:
        """See ``store.Images``."""
        self._store = store
        self._sandbox = sandbox
        self._profile = profile
        self._scratch = scratch
        self._offline = offline
        self._pull = pull
        self._admission = admission
        self._builder = Builder(sandbox, profile.build, scratch, "none" if offline else "public")

    @contextmanager
    def _half(self, key: str) -> Iterator[Path]:
        """Give the path of a half file; a full disk is the machine's fault."""
        work = half_name(image_path(self._store, key))
        try:
            yield work
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                where = error.filename or f"{self._scratch} or {self._store}"
                raise Conclusion("host-disk-full", f"{where}: {error.strerror}: free some space") from None
            raise
        finally:
            work.unlink(missing_ok=True)

    def make_base(self, plan: BuildPlan) -> Record:
        """Make a base by its recipe or from its registry. Raises Conclusion."""
        with self._half(plan.key) as work:
            self._make_base(plan.base, work)
            return self._publish(plan, work, Built(0.0, ""), None, installed([work]))

    def make_layer(self, plan: BuildPlan, ground: Ground, done: int) -> Record:
        """Make what the steps from number ``done`` on add. Raises NotALayerError, Conclusion."""
        if ground.record is None:
            raise NotALayerError("the base is a file")
        with self._half(plan.key) as work:
            try:
                with Lower(ground.files) as lower:
                    write_layer(lower, plan.steps[done:], plan.context, not self._sandbox.maps_uids, work)
            except (DamagedError, PackError, BrokenPipeError) as error:
                raise NotALayerError(str(error)) from None
            built = Built(ground.record.seconds, ground.record.log)
            return self._publish(plan, work, built, ground.record, ground.record.packages)

    def build(
        self,
        plan: BuildPlan,
        ground: Ground,
        done: int,
        origins: Mapping[str, Ground],
        seconds: float,
        limits: Limits,
        log: Path | None,
    ) -> Record:
        """Run the steps from number ``done`` on in a container. ``origins`` are what COPY --from reads, by key.

        What the images below took is of the task's time. Raises Conclusion.
        """
        spent = sum(one.record.seconds for one in (ground, *origins.values()) if one.record is not None)
        rest = replace(plan, steps=plan.steps[done:])
        files = {key: one.files for key, one in origins.items()}
        with self._half(plan.key) as work, self._admitted(limits):
            left = max(1.0, seconds - spent)
            as_layer = ground.record is not None and len(ground.files) <= MAX_LAYERS
            built = self._builder.build(rest, ground.files, work, left, limits, files, log, as_layer)
            before = ground.record.log if ground.record is not None else ""
            total = Built(spent + built.seconds, before + built.log)
            below = ground.record if built.is_layer else None
            packages = installed([*(ground.files if below else ()), work])
            return self._publish(plan, work, total, below, packages)

    def _make_base(self, base: Base, target: Path) -> None:
        if base.recipe:
            if self._offline:
                raise Conclusion("base-unavailable", f"{base.name} is not in the store, and this run is offline")
            try:
                with self._admitted(Limits()):
                    bootstrap(self._profile.recipes[base.recipe], target, all_root=not self._sandbox.maps_uids)
            except PackError as error:
                raise Conclusion("internal", f"{base.name} cannot be packed: {error}") from None
            return
        if self._pull is None or (self._offline and base.needs_network):
            raise Conclusion("base-unavailable", f"{base.name} is not in the store and cannot be pulled here")
        pulled = half_name(self._scratch / "pull").with_suffix(".sif")
        try:
            # It waits for a turn of its own, and must hold no core meanwhile.
            self._pull(base.reference, pulled)
            with self._admitted(Limits()):
                self._builder.build(base_plan(base, all_root=False), (pulled,), target, float("inf"), Limits())
        finally:
            pulled.unlink(missing_ok=True)

    @contextmanager
    def _admitted(self, limits: Limits) -> Iterator[None]:
        """Wait until the node has room for a build, whose base is there by now: who holds something never waits.

        The build's programs of the host are pinned as well as its containers.
        """
        if self._admission is None:
            yield
            return
        with self._admission.grant(Need.of([replace(limits, gpus=0)])) as granted, pinned(granted.cores):
            yield

    def _publish(self, plan: BuildPlan, work: Path, built: Built, below: Record | None, packages: Packages) -> Record:
        """Put a finished file in its place; its record comes last. Who was faster elsewhere is not replaced."""
        with work.open("rb") as file:
            os.fsync(file.fileno())
        record = Record(
            plan.key,
            file_digest(work),
            plan.base.name,
            work.stat().st_size,
            plan.config,
            not self._sandbox.maps_uids,
            (*below.below, below.key) if below else (),
            (*below.below_contents, below.content) if below else (),
            round(built.seconds, 3),
            packages,
            built.log,
        )
        other = usable_record(self._store, plan.key)
        if other is not None:
            return other
        work.replace(image_path(self._store, plan.key))
        write_record(self._store, record)
        return record
