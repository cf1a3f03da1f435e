"""Whose fault a failed build is: the task's, the network's, or the machine's."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pytest_otval.core import Conclusion

NEARLY_FULL_BYTES = 32 << 20
"""Free space of the scratch below which a full disk is the machine's."""

_NETWORK = re.compile(
    r"temporary failure (?:in name resolution|resolving)|could not resolve (?:host|proxy)|name or service not known"
    r"|no route to host|network is unreachable|connection (?:timed out|refused|reset by peer)|failed to fetch"
    r"|could not connect to|couldn't connect to server|failed to connect to|unable to connect to"
    r"|read timed out|getaddrinfo|eai_again|tls handshake timeout|nodename nor servname"
    r"|failed to establish a new connection|could not handshake",
    re.IGNORECASE,
)
_ANSWERED = re.compile(r"failed to fetch .*\b40[0-9]\b", re.IGNORECASE)
"""The mirror did answer: that version is gone, which is the Dockerfile's matter."""
_LOOPBACK = re.compile(r"localhost|127\.0\.0\.1|\[?::1\]?(?=[:\s]|$)")
_LAST_LINES = 60


def last_lines(text: str, count: int = 20) -> str:
    """Return the last lines of a log that say something."""
    lines = [line.rstrip()[:500] for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-count:])


def network_failure(text: str) -> str | None:
    """Return the line of a log's end that shows that the network does not answer, or None."""
    for line in reversed(last_lines(text, _LAST_LINES).splitlines()):
        if _NETWORK.search(line) and not _ANSWERED.search(line) and not _LOOPBACK.search(line):
            return line.strip()
    return None


def container_failure(ended: str, text: str, where: str, scratch: Path) -> Conclusion | None:
    """Return why a command of a container failed, where that is a limit's, the network's or the machine's doing.

    ``ended`` is how, ``text`` what it said, ``where`` what a user calls it. None: its own doing, or out of time.
    """
    log = last_lines(text)
    if disk_full(text, scratch) or (ended == "storage" and nearly_full(scratch)):
        return scratch_full(scratch)
    if ended in ("memory", "storage"):
        return Conclusion(f"{ended}-limit", f"{where}: over the {ended} limit", log)
    if ended == "killed":
        return Conclusion("killed", f"{where}: its container was killed from outside", log)
    silent = network_failure(text)
    return Conclusion("network-unreachable", f"{where}: {silent}", log) if silent else None


def scratch_full(scratch: Path) -> Conclusion:
    """Return what ends a stage when the scratch is full."""
    return Conclusion("host-disk-full", f"the scratch {scratch} is full: free some space or set OT_SCRATCH")


def disk_full(text: str, scratch: Path) -> bool:
    """Whether a log tells of a full disk and the scratch is full indeed."""
    return "no space left on device" in text.lower() and nearly_full(scratch)


def nearly_full(folder: Path) -> bool:
    """Whether a folder's file system has less than 1 % or ``NEARLY_FULL_BYTES`` free, or no inode."""
    facts = os.statvfs(folder)
    free = facts.f_bavail * facts.f_frsize
    out_of_inodes = facts.f_files > 0 and facts.f_favail == 0
    return free < NEARLY_FULL_BYTES or free * 100 < facts.f_blocks * facts.f_frsize or out_of_inodes
