"""The public network inside a container's own network namespace, by slirp4netns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sh

from pytest_otval.core import Conclusion
from pytest_otval.sandbox.readable import readable

INTERFACE = "tap0"
"""The container's way out."""

RESOLVER = "10.0.2.3"
"""Address at which slirp4netns answers name look-ups, whatever the host's resolver is."""

_READY_SECONDS = 10


@contextmanager
def public_network(pid: int) -> Iterator[None]:
    """Give the network namespace of process ``pid`` a way out, and take it away at the end.

    The host's own loopback stays out of reach. Should we be killed, the pipe that slirp4netns watches closes and it
    ends by itself. Raises Conclusion ``missing-tool`` or ``network-unreachable``.
    """
    try:
        slirp = sh.Command("slirp4netns")
    except sh.CommandNotFound:
        raise Conclusion("missing-tool", "slirp4netns is not on PATH: install it, or ask an administrator") from None
    ready_read, ready_write = os.pipe()
    watched, held = os.pipe()
    for theirs in (ready_write, watched):
        os.set_inheritable(theirs, True)
    options: dict[str, Any] = {
        "_bg": True,
        "_bg_exc": False,
        "_new_session": True,
        "_tty_out": False,
        "_ok_code": range(256),
        "_pass_fds": {ready_write, watched},
        "_return_cmd": True,
    }
    words = ("--configure", "--mtu=65520", "--disable-host-loopback", "--ready-fd", ready_write, "--exit-fd", watched)
    process = slirp(*map(str, words), str(pid), INTERFACE, **options)
    try:
        os.close(ready_write)
        os.close(watched)
        if not readable([ready_read], _READY_SECONDS) or os.read(ready_read, 1) != b"1":
            os.close(held)
            process.wait()
            words_of_slirp = process.stderr.decode(errors="replace").strip().splitlines()
            raise Conclusion(
                "network-unreachable", f"slirp4netns: {words_of_slirp[-1] if words_of_slirp else 'no answer'}"
            )
        yield
        os.close(held)
        process.wait()
    finally:
        os.close(ready_read)
