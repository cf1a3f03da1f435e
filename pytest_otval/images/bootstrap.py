"""A Debian base image without any registry, by mmdebstrap from the host's own package mirror."""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
import tempfile
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.images.failures import last_lines, network_failure
from pytest_otval.images.pack import packing, required
from pytest_otval.profile import Recipe

DEFAULT_MIRROR = "https://deb.debian.org/debian"

_APT = (
    'APT::Keep-Downloaded-Packages "false";',
    'Dir::Cache::pkgcache "";',
    'Dir::Cache::srcpkgcache "";',
    'Acquire::Languages "none";',
    'Acquire::GzipIndexes "true";',
)
"""Installed packages leave no archives and caches in the image, as in Docker's Debian images."""

_POST_STEPS = (
    # What mmdebstrap takes over from the host, or leaves as its own trace.
    'rm -f "$1/etc/resolv.conf" "$1/etc/hostname" "$1/var/log/bootstrap.log" "$1/var/log/apt/"* "$1/var/log/dpkg.log"',
    f"printf '%s\\n' {' '.join(shlex.quote(line) for line in _APT)} > \"$1/etc/apt/apt.conf.d/50no-caches\"",
    'printf "127.0.0.1 localhost\\n::1 localhost\\n" > "$1/etc/hosts"',
)
"""Shell commands over the new root ``$1``, outside of it."""


def recipe_digest(recipe: Recipe) -> str:
    """Return the sha256 of what a recipe means: suite, variant, packages and our own steps, never mirror or day."""
    parts = [recipe.suite, recipe.variant, sorted(set(recipe.packages)), _post_steps(recipe)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _post_steps(recipe: Recipe) -> tuple[str, ...]:
    return (*_POST_STEPS, *(f'rm -f "$1"{pattern}' for pattern in sorted(set(recipe.remove))))


def bootstrap(recipe: Recipe, target: Path, all_root: bool) -> None:
    """Make the base of a recipe as the squashfs ``target``.

    Raises Conclusion ``missing-tool``, ``network-unreachable`` or ``base-unavailable``; PackError.
    """
    argv = [required("mmdebstrap", "mmdebstrap"), f"--variant={recipe.variant}"]
    if recipe.packages:
        argv.append("--include=" + ",".join(sorted(set(recipe.packages))))
    argv += [f"--customize-hook={step}" for step in _post_steps(recipe)]
    mirror = host_mirror()
    argv += ["--format=tar", recipe.suite, "-", mirror]
    with tempfile.TemporaryFile() as words, packing(target, all_root) as stream:
        # In a session of its own: where it fails it sends SIGHUP to its whole process group.
        status = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=words, start_new_session=True, check=False
        ).returncode
        if status != 0:
            words.seek(0)
            raise _conclusion(f"mmdebstrap {recipe.suite} from {mirror}", status, words.read().decode(errors="replace"))


def _conclusion(what: str, status: int, log: str) -> Conclusion:
    silent = network_failure(log)
    if silent:
        return Conclusion("network-unreachable", f"{what}: {silent}", last_lines(log))
    errors = [line for line in last_lines(log).splitlines() if line.startswith("E: ")]
    last = errors[0] if errors else f"status {status}"
    return Conclusion("base-unavailable", f"{what}: {last}", last_lines(log))


def host_mirror() -> str:
    """Return the Debian mirror of the host's own apt, or Debian's own where it has none."""
    argv = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    try:
        listing = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        listing = ""
    mirrors = (line.rstrip("/") for line in listing.splitlines())
    return next((mirror for mirror in mirrors if mirror.endswith("/debian")), DEFAULT_MIRROR)
