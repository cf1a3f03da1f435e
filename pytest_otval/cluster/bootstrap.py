"""The first program of a job: unpacks the Python environment on the node and goes on in it.

It is run from the run folder by the base interpreter, so it imports nothing but the standard library.
"""

import gzip
import hashlib
import io
import json
import os
import shutil
import signal
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

FAILED = 70
"""Exit status (sysexits.h: EX_SOFTWARE) of a job whose node could not be made ready."""


class _Hashing(io.RawIOBase):
    """A file that is read once, and its checksum."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self.digest = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        self.digest.update(data)
        buffer[: len(data)] = data
        return len(data)


def unpack(archive: Path, checksum: str, target: Path) -> None:
    """Unpack an archive while its checksum is compared. Raises OSError, EOFError, tarfile.TarError, ValueError."""
    with archive.open("rb") as file:
        hashing = _Hashing(file)
        stream = io.BufferedReader(hashing, 1 << 20)
        with gzip.GzipFile(fileobj=stream) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as members:
            # Ours, and with a link to the base interpreter; the argument of extractall is newer than Python 3.11.
            members.extraction_filter = lambda member, path: member
            members.extractall(target)
        while stream.read(1 << 20):
            pass
    if hashing.digest.hexdigest() != checksum:
        raise ValueError(f"{archive} does not match its checksum")


PREFIX = "otval-job-"


def own_folder(base: Path) -> Path:
    """Return a new folder for this job, and remove those of jobs that were killed and whose site leaves them."""
    for left in base.glob(f"{PREFIX}*-*"):
        pid = left.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists() and left.lstat().st_uid == os.getuid():
            shutil.rmtree(left, ignore_errors=True)
    # This process becomes the job.
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=base))


def main(run: Path, array: str) -> None:
    """Replace this process by the job's own, or exit with one line that says why the node is not ready."""
    # Until the job listens: a job that is told of its time limit must not end here without a word.
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    folder = None
    try:
        folder = own_folder(Path(tempfile.gettempdir()))
        environment = json.loads((run / "staging.json").read_bytes())["environment"]
        unpack(Path(environment["path"]), environment["sha256"], folder / "env")
    except (OSError, EOFError, ValueError, KeyError, tarfile.TarError) as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        print(f"otval: {node}: the Python environment could not be unpacked: {error}", file=sys.stderr, flush=True)
        sys.exit(FAILED)
    python = str(folder / "env" / "bin" / "python")
    os.execv(python, [python, "-P", "-m", "pytest_otval.cluster.job", str(run), array, str(folder)])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
