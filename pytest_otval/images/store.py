"""The store of packed images: what is there, and the making of what is not, once for each key."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.images.bases import Bases, ImageSource, own_sources
from pytest_otval.images.copying import CopyError
from pytest_otval.images.failed import FailedImages
from pytest_otval.images.layer import NotALayerError
from pytest_otval.images.locks import locked
from pytest_otval.images.making import Ground, Maker, Pull
from pytest_otval.images.model import Files, Image, ImageRequest
from pytest_otval.images.plan import dockerfile_plan
from pytest_otval.images.record import Record, image_files, lock_path, read_record, usable_record
from pytest_otval.images.steps import BuildPlan, base_plan, files_plan, first_copy, last_command
from pytest_otval.profile import Profile
from pytest_otval.sandbox.admission import Admission
from pytest_otval.sandbox.base import Limits, Sandbox

_PLANS = 64
"""How many are kept: the stages of a task ask one after the other, and a run may have any number of tasks."""

BUILD_STORAGE_MB = 50 << 10
"""What a build may write at least: ``storage_mb`` is for what a trial writes, and counts nothing of the image."""


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
        their order, by default our own. Without ``pull`` no image of a registry can be had, without ``admission`` what
        has to be built starts at once.
        """
        self._store = store
        self._sandbox = sandbox
        self._profile = profile
        self._failed = FailedImages(run / "failed-images")
        self._force_build = force_build
        self._bases = Bases(profile, own_sources(store, profile, offline) if sources is None else sources)
        self._maker = Maker(store, sandbox, profile, scratch, offline, pull, admission)
        self._plans: dict[tuple[Path | None, str | None], BuildPlan] = {}

    def plan(self, request: ImageRequest) -> BuildPlan:
        """Return what has to be done for a request, without running anything; remembered for a while.

        Raises Conclusion: ``bad-task``, ``unsupported-instruction``, ``build-failed``, ``base-unavailable``.
        """
        asked = (request.context, request.docker_image)
        if asked not in self._plans:
            if len(self._plans) >= _PLANS:
                self._plans.clear()
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
        return self._ensure(plan, request.build_timeout_sec, _of_build(request.limits), log)

    def has(self, request: ImageRequest) -> bool:
        """Whether the image of a request is there, whole; nothing is made. Raises Conclusion as ``plan`` does."""
        plan = self.plan(request)
        is_file = not plan.steps and plan.base.file is not None
        return is_file or usable_record(self._store, plan.key) is not None

    def content(self, request: ImageRequest) -> str:
        """Return the content digest of a request's image; empty where it is not in the store.

        Raises Conclusion as ``plan`` does.
        """
        plan = self.plan(request)
        if not plan.steps and plan.base.file is not None:
            return ""
        image = self._stored(plan)
        return "" if image is None else image.content

    def base_files(self, request: ImageRequest) -> Files:
        """Return the files of the base that a request's image was built from; none where it is its own base.

        A Dockerfile's base counts even where nothing is done to it. Raises Conclusion as ``plan`` does.
        """
        plan = self.plan(request)
        if not plan.file:
            return ()
        if plan.base.file is not None:
            return (plan.base.file,)
        record = read_record(self._store, base_plan(plan.base, self._all_root).key)
        return () if record is None else image_files(self._store, record)

    def ensure_recipe(self, name: str) -> Image:
        """Return the image of a recipe of the profile (``bootstrap:NAME``), made now if it is missing.

        Raises KeyError for an unknown recipe, Conclusion as ``ensure`` does.
        """
        return self._ensure(base_plan(self._bases.recipe(name), self._all_root), float("inf"), Limits())

    def _make_plan(self, request: ImageRequest) -> BuildPlan:
        context = request.context
        all_root = self._all_root
        has_dockerfile = context is not None and os.path.lexists(context / "Dockerfile")
        if request.docker_image and not (self._force_build and has_dockerfile):
            folder = Path.cwd() if context is None else context.parent
            return base_plan(self._bases.docker_image(request.docker_image, folder), all_root)
        if context is None or not has_dockerfile:
            where = "the task" if context is None else context.name
            raise Conclusion("bad-task", f"{where} has neither a Dockerfile nor docker_image")
        return dockerfile_plan(context, self._bases, all_root)

    def keys(self, request: ImageRequest) -> frozenset[str]:
        """Return the keys of all images that a request's image is made from or lies on, its own included.

        Raises Conclusion as ``plan`` does.
        """
        return frozenset(self._keys(self.plan(request)))

    def _keys(self, plan: BuildPlan) -> Iterator[str]:
        for part in (plan, base_plan(plan.base, self._all_root), *self._parts(plan)):
            yield part.key
        for origin in plan.origins():
            yield from self._keys(origin)

    @property
    def _all_root(self) -> bool:
        return not self._sandbox.maps_uids

    def _ensure(self, plan: BuildPlan, seconds: float, limits: Limits, log: Path | None = None) -> Image:
        if not plan.steps and plan.base.file is not None:
            return Image(plan.key, (plan.base.file,), plan.base.name.rpartition(":")[2], plan.base.name, plan.config)
        image = self._stored(plan)
        if image is not None:
            return image
        self._failed.require_unknown(plan.key, seconds, limits)
        self._store.mkdir(parents=True, exist_ok=True)
        with locked(lock_path(self._store, plan.key)):
            image = self._stored(plan)
            if image is not None:
                return image
            self._failed.require_unknown(plan.key, seconds, limits)
            try:
                record = self._make(plan, seconds, limits, log)
            except Conclusion as conclusion:
                self._failed.remember(plan.key, conclusion, seconds, limits)
                raise
        return self._image(plan, record)

    def _make(self, plan: BuildPlan, seconds: float, limits: Limits, log: Path | None) -> Record:
        """Make an image whose lock is held: over the longest of its parts, which may be shared with other images."""
        # A Dockerfile that only names its base has the base's own key.
        if plan.key == base_plan(plan.base, self._all_root).key:
            return self._maker.make_base(plan)
        stem = self._parts(plan)[-1]
        done = len(stem.steps)
        ground = self._ground(stem, seconds, limits, log)
        if done == last_command(plan):
            with suppress(NotALayerError):
                return self._maker.make_layer(plan, ground, done)
        origins = {origin.key: self._ground(origin, seconds, limits, log) for origin in plan.origins()}
        return self._maker.build(plan, ground, done, origins, seconds, limits, log)

    def _parts(self, plan: BuildPlan) -> list[BuildPlan]:
        """Return the plans of the images that a plan's is made over, each over the one before: the base comes first.

        Cuts stand before the first step that copies, since what was installed by then is shared by many tasks, and
        before the last steps where they only add files, which become a layer.
        """
        cuts = {first_copy(plan), last_command(plan)} - {0, len(plan.steps)}
        try:
            own = [files_plan(plan, cut, self._all_root) for cut in sorted(cuts)]
        except CopyError as error:
            raise Conclusion("build-failed", f"{plan.file}: {error}") from None
        return [base_plan(plan.base, self._all_root), *(part for part in own if part.key != plan.key)]

    def _ground(self, plan: BuildPlan, seconds: float, limits: Limits, log: Path | None) -> Ground:
        if not plan.steps:
            seconds, limits = float("inf"), Limits()
        image = self._ensure(plan, seconds, limits, log)
        return Ground(image.files, read_record(self._store, image.key))

    def _stored(self, plan: BuildPlan) -> Image | None:
        """What is damaged is as good as none: it is made again."""
        record = usable_record(self._store, plan.key)
        return None if record is None else self._image(plan, record)

    def _image(self, plan: BuildPlan, record: Record) -> Image:
        """The configuration is the plan's: keys leave out what does not change how programs run."""
        content = record.content
        if record.below:
            content = hashlib.sha256("".join([*record.below_contents, content]).encode()).hexdigest()
        return Image(plan.key, image_files(self._store, record), content, plan.base.name, plan.config)


def _of_build(limits: Limits) -> Limits:
    storage = limits.storage_mb
    return limits if storage is None else replace(limits, storage_mb=max(storage, BUILD_STORAGE_MB))
