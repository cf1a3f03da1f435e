"""A real Slurm for tests, as ``scripts/localslurm.sh`` makes one: two nodes that share one folder and nothing else."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "localslurm.sh"
USERS = ("otval-sub", "otval-plain")
"""Ordinary users, one of which jobs belong to where tests run as root; ``.ci/run`` makes them."""
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
GIVE_UP_SECONDS = 300
SAVED_SECONDS = 8
"""slurmctld saves what changed within five."""


@dataclass(frozen=True)
class LocalSlurm:
    """One that runs. Jobs belong to an ordinary user, whoever runs the tests."""

    folder: Path
    user: str
    """Whose jobs they are."""
    shared: Path
    """That user's own folder on the storage that all nodes see."""

    @property
    def environment(self) -> dict[str, str]:
        """What a shell has that sourced env.sh."""
        return {"SLURM_CONF": f"{self.folder}/etc/slurm.conf", "LOCALSLURM_SHARED": str(self.folder / "shared")}

    def run(self, *argv: str | Path, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a program as the user on the login node, in the shared folder."""
        result = subprocess.run(
            self.command(*argv, **env),
            cwd=self.shared,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or result.returncode == 0, f"{argv}: {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result

    def command(self, *argv: str | Path, **env: str) -> list[str]:
        """Return what runs a program as the user."""
        home = pwd.getpwnam(self.user).pw_dir
        full = {"HOME": home, "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **self.environment, **env}
        prefix = ["runuser", "-u", self.user, "--"] if os.getuid() == 0 else []
        return [*prefix, "env", "-i", *(f"{name}={value}" for name, value in full.items()), *map(str, argv)]

    def on(self, node: str, script: str) -> str:
        """Run a shell script as the user on a node, in a job of its own; return what it printed."""
        return self.run("srun", "--quiet", "-w", node, "--mem=100", "bash", "-c", script).stdout

    def submit(self, script: str, *options: str, **env: str) -> str:
        """Submit a batch job; return its id. What it prints goes to ``ID.out``, of an array to ``ID_INDEX.out``."""
        output = "%A_%a.out" if any(option.startswith("--array") for option in options) else "%j.out"
        options = ("--parsable", f"--output={output}", "--open-mode=append", "--mem=100", *options)
        return self.run("sbatch", *options, f"--wrap={script}", **env).stdout.strip()

    def output(self, name: str) -> str:
        """Return what a job printed so far: ``ID`` or ``ID_INDEX``."""
        file = self.shared / f"{name}.out"
        return file.read_text() if file.exists() else ""

    def states(self, job: str) -> list[str]:
        """Return the state of a job, or of each element of an array, as PENDING or COMPLETED."""
        return self.run("squeue", "--states=all", "-h", "--array", "-o", "%T", "-j", job).stdout.split()

    def wait_for(self, job: str, *states: str) -> None:
        """Wait until all of a job is in one of these states."""
        self.until(lambda: set(self.states(job)) <= set(states))

    def until(self, holds) -> None:
        """Wait until something holds; a test that waits for five minutes fails."""
        end = time.monotonic() + GIVE_UP_SECONDS
        while not holds():
            assert time.monotonic() < end, self.run("squeue", "--states=all", "--array", check=False).stdout
            time.sleep(0.2)

    def kill_controller(self) -> None:
        """Kill slurmctld, with the state of all jobs on its disk: it would forget those that are younger."""
        time.sleep(SAVED_SECONDS)
        self.fault("kill", "slurmctld")

    def fault(self, *words: str) -> None:
        """Cause a fault: ``down n1``, ``fill n1``, ``kill slurmctld``; ``up`` and ``free n1`` end it."""
        control(self.folder, *words)


def control(folder: Path, *words: str, **env: str) -> str:
    """Run scripts/localslurm.sh about a folder."""
    argv = [str(SCRIPT), str(folder), *words]
    result = subprocess.run(argv, env={**os.environ, **env}, capture_output=True, text=True, check=False, cwd="/")
    assert result.returncode == 0, result.stderr
    return result.stdout


@contextmanager
def new_localslurm(**env: str) -> Iterator[LocalSlurm]:
    """Start one as root and stop it afterwards; ``env`` are variables of the script."""
    folder = Path(tempfile.mkdtemp(prefix="otval-localslurm-", dir="/var/lib"))
    try:
        folder.chmod(0o755)
        control(folder, "start", **env)
        yield _with_folder(folder, next(user for user in USERS if _exists(user)))
    finally:
        control(folder, "stop")
        shutil.rmtree(folder)


@contextmanager
def any_localslurm() -> Iterator[LocalSlurm]:
    """Use the one of $SLURM_CONF and $LOCALSLURM_SHARED, or start one where tests run as root."""
    shared = os.environ.get("LOCALSLURM_SHARED", "")
    if shared and os.environ.get("SLURM_CONF"):
        user = pwd.getpwuid(os.getuid()).pw_name if os.getuid() else next(user for user in USERS if _exists(user))
        yield _with_folder(Path(shared).parent, user)
        return
    missing = _missing()
    if missing:
        # In CI a test that cannot run has failed.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no Slurm to test with: {missing}")
    with new_localslurm() as started:
        yield started


def _missing() -> str:
    if os.getuid() != 0:
        return "as root: scripts/localslurm.sh DIR start; then source DIR/env.sh"
    programs = [name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]
    if programs:
        return f"apt-get install --no-install-recommends slurmctld slurmd slurm-client munge ({', '.join(programs)})"
    return (
        "" if any(map(_exists, USERS)) else f"useradd --create-home {USERS[0]}, since jobs belong to an ordinary user"
    )


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def _with_folder(folder: Path, user: str) -> LocalSlurm:
    """A folder of the user's on shared storage, in which all of a test session is."""
    own = folder / "shared" / f"tests-{user}-{os.getpid()}"
    own.mkdir()
    shutil.chown(own, user)
    return LocalSlurm(folder, user, own)


def running_below(folder: Path, of: Sequence[str] = ("cmdline", "environ")) -> list[str]:
    """Return the processes that name a folder in their command or environment; root sees all."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            texts = [(process / name).read_bytes() for name in of]
        except OSError:
            continue
        if int(process.name) != os.getpid() and any(os.fsencode(folder) in text for text in texts):
            found.append(f"{process.name} {texts[0]!r}")
    return found
