"""The store of packed images: what is there, and the making of what is not, once for each key."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pytest_otval.core import Conclusion
from pytest_otval.images.bases import FILE_SUFFIXES, Base, Bases, ImageSource, file_digest, own_sources
from pytest_otval.images.bootstrap import bootstrap
from pytest_otval.images.build import Builder
from pytest_otval.images.failed import FailedImages
from pytest_otval.images.model import Image, ImageRequest
from pytest_otval.images.pack import PackError
from pytest_otval.images.plan import dockerfile_plan
from pytest_otval.images.steps import BuildPlan, base_plan, shared_prefix
from pytest_otval.profile import Profile
from pytest_otval.sandbox.admission import Admission, Need
from pytest_otval.sandbox.base import Limits, Sandbox
from pytest_otval.sandbox.limits import pinned

Pull = Callable[[str, Path], None]
"""Writes the image of ``HOST/PATH@sha256:DIGEST`` to a ``.sif`` file; raises Conclusion."""


class Images:
    """Plans and makes images: ``KEY.sqfs`` and ``KEY.json`` in the store; the latter says that it is complete."""

    def __init__(
        self,
        store: Path,
        sandbox: Sandbox,
        profile: Profile,
        scratch: Path,
        run: Path,
        force_build: bool = False,
        offline: bool = False,
        sources: Sequence[ImageSource] | None = None,
        pull: Pull | None = None,
        admission: Admission | None = None,
    ) -> None:
        """``scratch`` is node-local, ``run`` the run's folder, which remembers builds that failed by the task's fault.

        ``offline`` asks no registry, makes no base and gives RUN no network. ``sources`` are asked for base images in
        their order, by default our own. Without ``pull`` no image of a registry
        can be had, without ``admission`` what has to be built starts at once.
        """
        self._store = store
        self._sandbox = sandbox
        self._profile = profile
        self._scratch = scratch
        self._failed = FailedImages(run / "failed-images")
        self._force_build = force_build
        self._offline = offline
        self._pull = pull
        self._admission = admission
        self._bases = Bases(profile, own_sources(store, profile, offline) if sources is None else sources)
        self._builder = Builder(sandbox, profile.build, scratch, "none" if offline else "public")
        self._plans: dict[tuple[Path | None, str | None], BuildPlan] = {}

    def plan(self, request: ImageRequest) -> BuildPlan:
        """Return what has to be done for a request, without running anything; made once in this process.

        Raises Conclusion: ``bad-task``, ``unsupported-instruction``, ``build-failed``, ``base-unavailable``.
        """
        asked = (request.context, request.docker_image)
        if asked not in self._plans:
            self._plans[asked] = self._make_plan(request)
        return self._plans[asked]

    def ensure(self, request: ImageRequest, log: Path | None = None) -> Image:
        """Return the image of a request, from the store or built now; what a build says is appended to ``log``.

        Raises Conclusion: what ``plan`` raises, ``needs-uid-mapping``, ``build-timeout``, ``memory-limit``,
        ``storage-limit``, ``host-disk-full``, ``network-unreachable``, ``missing-tool``, ``no-start``, ``killed``.
        """
        plan = self.plan(request)
        if plan.needs_uid_mapping and not self._sandbox.maps_uids:
            raise Conclusion("needs-uid-mapping", plan.needs_uid_mapping)
        return self._ensure(plan, request.build_timeout_sec, request.limits, log)

    def ensure_recipe(self, name: str) -> Image:
        """Return the image of a recipe of the profile (``bootstrap:NAME``), made now if it is missing.

        Raises KeyError for an unknown recipe, Conclusion as ``ensure`` does.
        """
        return self._ensure_base(self._bases.recipe(name))

    def _make_plan(self, request: ImageRequest) -> BuildPlan:
        context = request.context
        all_root = not self._sandbox.maps_uids
        has_dockerfile = context is not None and os.path.lexists(context / "Dockerfile")
        if request.docker_image and not (self._force_build and has_dockerfile):
            name = request.docker_image
            if not name.endswith(FILE_SUFFIXES):
                return base_plan(self._bases.resolve(name, "docker_image"), all_root)
            file = Path(name) if context is None else context.parent / name
            return base_plan(self._bases.file(file, "docker_image"), all_root)
        if context is None or not has_dockerfile:
            where = "the task" if context is None else context.name
            raise Conclusion("bad-task", f"{where} has neither a Dockerfile nor docker_image")
        return dockerfile_plan(context, self._bases, all_root)

    def _ensure(self, plan: BuildPlan, seconds: float, limits: Limits, log: Path | None = None) -> Image:
        if not plan.steps and plan.base.file is not None:
            file = plan.base.file
            return Image(plan.key, file, plan.base.name.rpartition(":")[2], plan.base.name, plan.config)
        image = self._stored(plan)
        if image is not None:
            return image
        self._failed.require_unknown(plan.key)
        self._store.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._store / f"{plan.key}.lock")
        with lock:
            image = self._stored(plan)
            if image is None:
                self._failed.require_unknown(plan.key)
                image = self._make(plan, seconds, limits, log)
        # Whoever still waits for this lock finds the image; nobody needs the file any more.
        with suppress(OSError):
            Path(lock.lock_file).unlink()
        return image

    def _ensure_base(self, base: Base) -> Image:
        return self._ensure(base_plan(base, all_root=not self._sandbox.maps_uids), float("inf"), Limits())

    def _make(self, plan: BuildPlan, seconds: float, limits: Limits, log: Path | None) -> Image:
        for stale in self._store.glob(f".{plan.key}.*"):
            stale.unlink(missing_ok=True)
        work = self._store / f".{plan.key}.{os.getpid()}.sqfs"
        try:
            # A Dockerfile that only names its base has the base's own key.
            spent = 0.0
            if plan.key == base_plan(plan.base, all_root=not self._sandbox.maps_uids).key:
                self._make_base(plan.base, work)
            else:
                spent = self._build(plan, work, seconds, limits, log)
            return self._publish(plan, work, spent)
        except Conclusion as conclusion:
            self._failed.remember(plan.key, conclusion)
            raise
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                where = error.filename or f"{self._scratch} or {self._store}"
                raise Conclusion("host-disk-full", f"{where}: {error.strerror}: free some space") from None
            raise
        finally:
            work.unlink(missing_ok=True)

    def _build(self, plan: BuildPlan, target: Path, seconds: float, limits: Limits, log: Path | None) -> float:
        """Build over the base, or over the image of what comes before the first COPY, whose time counts as well."""
        prefix = shared_prefix(plan, all_root=not self._sandbox.maps_uids)
        if prefix is None or prefix.key == plan.key:
            return self._run(plan, self._ensure_base(plan.base).path, target, seconds, limits, log)
        start = self._ensure(prefix, seconds, limits, log)
        before = float((_read_json(self._store / f"{prefix.key}.json") or {}).get("seconds", 0.0))
        rest = replace(plan, steps=plan.steps[len(prefix.steps) :])
        return before + self._run(rest, start.path, target, max(1.0, seconds - before), limits, log)

    def _run(
        self, plan: BuildPlan, base: Path, target: Path, seconds: float, limits: Limits, log: Path | None
    ) -> float:
        with self._admitted(limits):
            return self._builder.build(plan, base, target, seconds, limits, log)

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
        if self._pull is None or self._offline:
            raise Conclusion("base-unavailable", f"{base.name} is not in the store and cannot be pulled here")
        pulled = self._scratch / f"pull-{os.getpid()}-{target.name.split('.')[1][:16]}.sif"
        try:
            with self._admitted(Limits()):
                self._pull(base.reference, pulled)
                self._builder.build(base_plan(base, all_root=False), pulled, target, float("inf"), Limits())
        finally:
            pulled.unlink(missing_ok=True)

    def _stored(self, plan: BuildPlan) -> Image | None:
        """The configuration is the plan's: keys leave out what does not change how programs run."""
        path = self._store / f"{plan.key}.sqfs"
        values = _read_json(self._store / f"{plan.key}.json")
        if values is None or not path.is_file():
            return None
        return Image(plan.key, path, str(values["content"]), plan.base.name, plan.config)

    def _publish(self, plan: BuildPlan, packed: Path, seconds: float) -> Image:
        """The JSON file comes last: it says that the image is complete."""
        image = Image(plan.key, self._store / f"{plan.key}.sqfs", file_digest(packed), plan.base.name, plan.config)
        values = {
            "key": image.key,
            "content": image.content,
            "base": image.base,
            "bytes": packed.stat().st_size,
            "seconds": round(seconds, 3),
            "all_root": not self._sandbox.maps_uids,
            "config": image.config.as_dict(),
        }
        packed.replace(image.path)
        _write_json(self._store / f"{plan.key}.json", values)
        return image


def sweep_store(store: Path) -> int:
    """Remove what killed builds left in a store, half images and locks nobody holds; return how many files."""
    swept = 0
    for file in store.glob("*.lock"):
        lock = FileLock(file, timeout=0)
        try:
            with lock:
                half = list(store.glob(f".{file.stem}.*"))
                for path in (*half, file):
                    path.unlink(missing_ok=True)
                swept += len(half) + 1
        except Timeout:
            continue
    return swept


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return values if isinstance(values, dict) else None


def _write_json(path: Path, values: dict[str, Any]) -> None:
    work = path.with_name(f".{path.name}.{os.getpid()}")
    work.write_text(json.dumps(values, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    work.replace(path)
