"""Getting a base image from where it is, a registry or an archive, to a file that the runtime takes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Protocol

from pytest_otval.core import Conclusion
from pytest_otval.images.archives import open_archive
from pytest_otval.images.oci import NoAnswerError, NotThereError, RefusedError
from pytest_otval.images.pack import PackError
from pytest_otval.images.reference import parse_reference
from pytest_otval.images.registry import Registry
from pytest_otval.images.rootless import pack_rootless, require_notes
from pytest_otval.sandbox.slots import Slots

ARCHIVE = "oci-archive:"
"""``oci-archive:PATH@sha256:DIGEST`` is the image of a digest in an archive."""


class Converter(Protocol):
    """What a container runtime does with OCI layouts: see ``sandbox.apptainer``."""

    @property
    def loses_owners(self) -> bool:
        """Whether ``convert`` gives all files to root, though it need not."""

    def convert(self, layout: Path, target: Path) -> None:
        """Write a SIF file. Raises Conclusion ``base-unavailable`` or ``host-disk-full``."""

    def unpack(self, layout: Path, target: Path) -> None:
        """Unpack to a new folder. Raises as ``convert`` does."""


class Puller:
    """Pulls images, a few at once on a node."""

    def __init__(self, registry: Registry, converter: Converter, scratch: Path, slots: Path, at_once: int) -> None:
        """``scratch`` is this process's own.

        ``slots`` is a node-local folder that all processes of a user share, of whose pulls ``at_once`` run at a time.
        """
        self._registry = registry
        self._converter = converter
        self._scratch = scratch
        self._slots = Slots(slots, "pull", at_once)

    def __call__(self, reference: str, target: Path) -> None:
        """Write the image ``HOST/PATH@sha256:DIGEST``, or of ``ARCHIVE``, to a file that the runtime takes.

        Raises Conclusion ``network-unreachable`` where no registry answers, ``bad-task`` where an archive is no good,
        else ``base-unavailable``; OSError.
        """
        with self._slots.one(), tempfile.TemporaryDirectory(prefix="pull-", dir=self._scratch) as work:
            layout = Path(work) / "layout"
            layout.mkdir()
            if reference.startswith(ARCHIVE):
                _extract(reference.removeprefix(ARCHIVE), layout)
            else:
                self._download(reference, layout)
            try:
                self._convert(layout, target)
            except Conclusion as conclusion:
                if conclusion.reason != "base-unavailable":
                    raise
                reason = "bad-task" if reference.startswith(ARCHIVE) else "base-unavailable"
                raise Conclusion(reason, f"{reference}: {conclusion.headline}") from None

    def _convert(self, layout: Path, target: Path) -> None:
        if not self._converter.loses_owners:
            self._converter.convert(layout, target)
            return
        require_notes(layout)
        root = layout.with_name("root")
        self._converter.unpack(layout, root)
        try:
            pack_rootless(root, target)
        except PackError as error:
            raise Conclusion("internal", f"the image cannot be packed: {error}") from None

    def _download(self, reference: str, layout: Path) -> None:
        try:
            self._registry.download(parse_reference(reference), layout)
        except (NoAnswerError, NotThereError, RefusedError) as error:
            reason = "network-unreachable" if isinstance(error, NoAnswerError) else "base-unavailable"
            raise Conclusion(reason, f"{reference} cannot be pulled: {error}") from None


def _extract(place: str, layout: Path) -> None:
    path, _, digest = place.rpartition("@")
    try:
        with open_archive(Path(path)) as archive:
            if archive.image.digest != digest:
                raise RefusedError("it was changed since it was looked at")
            archive.write_layout(layout)
    except RefusedError as error:
        raise Conclusion("bad-task", f"{path}: {error}") from None
