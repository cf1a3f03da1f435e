"""Where things lie: the folders of ``$OT_WORKSPACE`` and the node-local scratch."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.core import OtvalUsageError

FOLDERS = ("datasets", "models", "images", "runtimes", "envs", "runs", "contracts")


@dataclass(frozen=True, slots=True)
class Workspace:
    """The shared folder that set-up made, on storage that compute nodes see."""

    root: Path

    @classmethod
    def from_environment(cls) -> Workspace:
        """Return the workspace of ``$OT_WORKSPACE``. Raises OtvalUsageError where there is none."""
        value = os.environ.get("OT_WORKSPACE", "")
        if not value:
            raise OtvalUsageError("OT_WORKSPACE is not set: run ./setup.sh WORKSPACE, then `source env.sh`")
        root = Path(value).absolute()
        if not root.is_dir():
            raise OtvalUsageError(f"OT_WORKSPACE={root} is no folder: run ./setup.sh {root}")
        return cls(root)

    @property
    def images(self) -> Path:
        """Packed images, ``<key>.sqfs`` and ``<key>.json``."""
        return self.root / "images"

    @property
    def runtimes(self) -> Path:
        """Cached runtimes: ``$OT_RUNTIME_CACHE`` where that is set, else a folder of the workspace."""
        return Path(os.environ.get("OT_RUNTIME_CACHE") or self.root / "runtimes").absolute()

    @property
    def models(self) -> Path:
        """Weights of language models: ``$OT_MODELS`` where that is set, else a folder of the workspace."""
        return Path(os.environ.get("OT_MODELS") or self.root / "models").absolute()

    @property
    def cache(self) -> Path:
        """What can be computed again."""
        return self.root / "cache"

    @property
    def judges(self) -> Path:
        """What people and measurements say of judges."""
        return self.root / "judges"

    @property
    def datasets(self) -> Path:
        """Prepared datasets."""
        return self.root / "datasets"

    @property
    def contracts(self) -> Path:
        """What is known of contracts besides what stands in them."""
        return self.root / "contracts"

    @property
    def runs(self) -> Path:
        """Run folders: ledger, evidence, reports."""
        return self.root / "runs"


def default_cluster() -> str:
    """Return the name of the cluster profile where none is chosen: ``$OT_CLUSTER``, which set-up wrote, else local."""
    return os.environ.get("OT_CLUSTER") or "local"


def scratch(path: str = "") -> Path:
    """Return the node-local folder for writable layers: ``$OT_SCRATCH``, else ``path``, else ``$TMPDIR``, else /tmp.

    ``path`` is the profile's, with ``$VARIABLES``. One sub-folder a user, private to it, so that two users of a node
    never meet. Raises OtvalUsageError.
    """
    return _own(Path(os.environ.get("OT_SCRATCH") or os.path.expandvars(path) or tempfile.gettempdir()))


def node_folder() -> Path:
    """Return the folder of this user that all of its jobs on this node see, where each has a $TMPDIR of its own.

    Raises OtvalUsageError.
    """
    shared = Path("/dev/shm")
    return _own(shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir()))


def _own(base: Path) -> Path:
    own = base / f"otval-{os.getuid()}"
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = own.lstat()
    if facts.st_uid != os.getuid() or own.is_symlink():
        raise OtvalUsageError(f"{own} belongs to somebody else: set OT_SCRATCH to a folder of your own")
    return own
