"""Which commands of an agent ask other machines for something, by their text. Whether they got it is not known here."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from pytest_otval.checks.verify_fetch import fetches, remote

MOST_HOSTS = 20
"""More hosts of one text are not told apart."""

_URL = re.compile(r"\b(?:https?|ftp|git|ssh)://[^\s'\"<>|;)\\]{1,300}")
_TRANSFERS = frozenset(("curl", "wget"))
_CLIENTS = frozenset(
    ("ssh", "scp", "sftp", "rsync", "nc", "ncat", "netcat", "telnet", "ftp", "ping", "dig", "nslookup", "host")
)
_CODE = re.compile(r"\b(?:requests\.|urllib|urlopen|http\.client|httpx|aiohttp|create_connection|fetch\()")


def hosts_in(text: str) -> frozenset[str]:
    """Return the other machines that the addresses in a text name."""
    found: set[str] = set()
    for url in _URL.findall(text):
        if len(found) < MOST_HOSTS and remote(url):
            found |= _host(url)
    return frozenset(found)


def _host(url: str) -> set[str]:
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return set()
    return {host} if host and host.isprintable() else set()


def installs(words: Sequence[str]) -> bool:
    """Whether an unwrapped command installs packages from somewhere else."""
    return fetches(words) and posixpath.basename(words[0]) not in {*_TRANSFERS, "git"}


def is_client(words: Sequence[str]) -> bool:
    """Whether an unwrapped command is a program that talks to another machine, as it is called here."""
    name, args = posixpath.basename(words[0]), [arg for arg in words[1:] if not arg.startswith("-")]
    if name in _TRANSFERS:
        return any(map(remote, args)) or (
            not any("://" in arg for arg in args) and any(remote(f"http://{arg}") for arg in args)
        )
    return name in _CLIENTS or (name == "git" and fetches(words))


def is_used(words: Sequence[str], rest: Sequence[str], stdin: str) -> bool:
    """Whether a command asks another machine: ``words`` as written, ``rest`` without what only starts it."""
    if not rest:
        return False
    code = "\n".join((*rest[1:], stdin))
    return is_client(rest) or fetches(words) or (_CODE.search(code) is not None and bool(hosts_in(code)))
