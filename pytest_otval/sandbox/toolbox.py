"""The toolbox: a read-only squashfs with a static busybox, mounted in each container before anything of a task.

It is also a complete tiny image (``busybox``, ``sh`` and the mount points a runtime wants), which the probes use. In
its folder ``lib`` are the scripts that those of tasks source.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_otval.core import Conclusion

_MOUNT_POINTS = ("dev", "proc", "sys", "tmp", "root", "etc", "var/tmp", "own-layers")

SCRIPTS = Path(__file__).parents[1] / "data" / "toolbox"
"""What is in ``lib``."""


def ensure_toolbox(folder: Path) -> Path:
    """Return the toolbox below ``folder``, packing it where it is missing.

    Its name carries the digest of what it holds, so another busybox makes another file.
    Raises Conclusion ``missing-tool``.
    """
    busybox = _static_busybox()
    scripts = sorted(SCRIPTS.glob("*.sh"))
    contents = [f"{sorted(_MOUNT_POINTS)}".encode(), *(file.read_bytes() for file in (busybox, *scripts))]
    digest = hashlib.sha256(b"\0".join(contents)).hexdigest()
    path = folder / f"toolbox-{digest[:16]}.sqfs"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix=".toolbox-") as work:
            root = Path(work) / "root"
            for name in _MOUNT_POINTS:
                (root / name).mkdir(parents=True)
            shutil.copyfile(busybox, root / "busybox")
            (root / "busybox").chmod(0o755)
            (root / "sh").symlink_to("busybox")
            (root / "lib").mkdir()
            for script in scripts:
                shutil.copyfile(script, root / "lib" / script.name)
                (root / "lib" / script.name).chmod(0o644)
            packed = Path(work) / "toolbox.sqfs"
            subprocess.run(
                ["mksquashfs", root, packed, "-all-root", "-no-progress", "-quiet"],
                check=True,
                capture_output=True,
            )
            packed.replace(path)
    return path


def _static_busybox() -> Path:
    for program in ("mksquashfs", "busybox"):
        if shutil.which(program) is None:
            package = {"mksquashfs": "squashfs-tools", "busybox": "busybox-static"}[program]
            raise Conclusion("missing-tool", f"{program} is not on PATH: install {package}, or ask an administrator")
    busybox = Path(shutil.which("busybox") or "")
    # A dynamic program names its loader; in a container that loader would be the task's.
    if b"/ld-linux" in busybox.read_bytes()[:4096]:
        raise Conclusion("missing-tool", f"{busybox} is not static: install busybox-static")
    return busybox
