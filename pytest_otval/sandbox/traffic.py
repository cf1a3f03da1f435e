"""What a container asks of the public network: names it looks up and addresses it begins to talk to.

A packet socket in the container's network namespace hears what leaves through its interface; nothing is held up, and
nothing in the container can see the socket. We own the user namespace, so root is not needed. What is heard is hostile:
the kernel hands over beginnings of connections only, and what is kept of them is bounded.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import sh

from pytest_otval.core import printable
from pytest_otval.sandbox.network import INTERFACE, RESOLVER
from pytest_otval.sandbox.readable import readable

MAX_KEPT = 200
"""Names, and addresses, that are kept of a phase."""
MAX_PACKETS = 50_000
"""Beginnings that are listened to in one container: what floods is heard no longer than that."""
_SNAP = 2048
_MAX_NAME = 253
_DNS_HEADER = 12
_MAX_QUESTION = 255 + 4
"""A name, and two numbers (RFC 1035, 4.1.2)."""

_JOIN = """
import ctypes, errno, os, socket, sys
pid, way = sys.argv[1], socket.socket(fileno=int(sys.argv[2]))
libc = ctypes.CDLL(None, use_errno=True)
spaces = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in ("user", "net")]
# To enter one's own user namespace is refused as invalid.
for space, flag, fine in zip(spaces, (1 << 28, 1 << 30), (errno.EINVAL, 0)):
    if libc.setns(space, flag) and ctypes.get_errno() != fine:
        sys.exit(f"the container's namespace cannot be entered: {os.strerror(ctypes.get_errno())}")
try:
    heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
except OSError as error:
    sys.exit(f"no packet socket can be opened: {error.strerror}")
socket.send_fds(way, [b"."], [heard.fileno()])
"""
"""Opens the socket in the namespaces of a process and hands it over. A program of its own: only a process with one
thread may enter a user namespace, and one that execs afterwards would lose its power there."""

# Classic BPF: what goes out, and of that TCP's first packets, UDP, and all of IPv6 (which has next to none).
_FILTER = (
    (0x20, 0, 0, 0xFFFFF004),  # ld  packet type
    (0x15, 0, 11, 4),  # outgoing, or drop
    (0x28, 0, 0, 12),  # ldh ethertype
    (0x15, 8, 0, 0x86DD),  # IPv6: keep
    (0x15, 0, 8, 0x0800),  # IPv4, or drop
    (0x30, 0, 0, 23),  # ldb protocol
    (0x15, 5, 0, 17),  # UDP: keep
    (0x15, 0, 5, 6),  # TCP, or drop
    (0xB1, 0, 0, 14),  # ldx length of the IP header
    (0x50, 0, 0, 27),  # ldb TCP flags
    (0x54, 0, 0, 0x12),  # SYN and ACK
    (0x15, 0, 1, 0x02),  # SYN alone: keep
    (0x06, 0, 0, _SNAP),
    (0x06, 0, 0, 0),
)
_SO_ATTACH_FILTER, _SOL_PACKET, _PACKET_STATISTICS, _ETH_P_ALL = 26, 263, 6, 3


@dataclass(frozen=True, slots=True)
class Heard:
    """What was heard of a container for a while."""

    names: tuple[str, ...] = ()
    """Names that were looked up, as they were first; printable."""
    addresses: tuple[str, ...] = ()
    """``tcp ADDRESS:PORT`` or ``udp ...`` that something was sent to, our own resolver left out."""
    more: int = 0
    """Packets that were not looked at, or names and addresses that were too many."""
    unheard: str = ""
    """Why nothing could be heard. Then there may have been anything."""


@dataclass(slots=True)
class Traffic:
    """Is told by a sandbox what a container asks; ``take`` gives what came since it was called last."""

    unheard: str = "nothing listened"
    """Why nothing can be heard; empty while somebody listens."""
    _names: dict[str, None] = field(default_factory=dict)
    _addresses: dict[str, None] = field(default_factory=dict)
    _more: int = 0
    _packets: int = 0
    _socket: socket.socket | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> Heard:
        """Return what was heard since the last call."""
        self.drain()
        with self._lock:
            heard = Heard(tuple(self._names), tuple(self._addresses), self._more, self.unheard)
            self._names, self._addresses, self._more = {}, {}, 0
        return heard

    def drain(self) -> bool:
        """Take what the socket has by now; return whether there is more to listen to."""
        with self._lock:
            while self._socket is not None:
                try:
                    packet = self._socket.recv(_SNAP)
                except BlockingIOError:
                    return True
                except OSError:
                    # The interface went away with the container's processes.
                    break
                self._packets += 1
                if self._packets > MAX_PACKETS:
                    self._more += 1
                    break
                self._hear(packet)
        return False

    def hear(self, packet: bytes) -> None:
        """Take one packet."""
        with self._lock:
            self._hear(packet)

    def _hear(self, packet: bytes) -> None:
        names, address = parse(packet)
        for kept, one in (*((self._names, name) for name in names), (self._addresses, address)):
            if not one or one in kept:
                continue
            if len(kept) < MAX_KEPT:
                kept[one] = None
            else:
                self._more += 1

    def begin(self, source: socket.socket) -> None:
        """Listen to a socket from now on."""
        source.setblocking(False)
        with self._lock:
            self._socket, self.unheard = source, ""

    def end(self) -> None:
        """Take what there is and listen no longer."""
        self.drain()
        with self._lock:
            if self._socket is not None:
                with suppress(OSError):
                    counts = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
                    self._more += struct.unpack("II", counts)[1]
                self._socket.close()
                self._socket = None


@contextmanager
def listening(traffic: Traffic, pid: int) -> Iterator[None]:
    """Tell ``traffic`` what leaves the network namespace of process ``pid``, until the end; why not, if that fails."""
    try:
        source = _packet_socket(pid)
    except OSError as error:
        traffic.unheard = str(error)
        yield
        return
    traffic.begin(source)
    stop_read, stop_write = os.pipe()
    thread = threading.Thread(target=_listen, args=(traffic, source, stop_read), daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.close(stop_write)
        thread.join()
        os.close(stop_read)
        traffic.end()


def _listen(traffic: Traffic, source: socket.socket, stop: int) -> None:
    while True:
        if stop in readable([source.fileno(), stop]) or not traffic.drain():
            return


def _packet_socket(pid: int) -> socket.socket:
    """Return a socket that hears the interface of a network namespace. Raises OSError with a line that says why not."""
    ours, theirs = socket.socketpair()
    theirs.set_inheritable(True)
    options: dict[str, Any] = {"_tty_out": False, "_pass_fds": {theirs.fileno()}, "_new_session": True}
    try:
        sh.Command(sys.executable)("-I", "-S", "-c", _JOIN, str(pid), str(theirs.fileno()), **options)
        _, (handle,), _, _ = socket.recv_fds(ours, 1, 1)
    except sh.ErrorReturnCode as error:
        words = error.stderr.decode(errors="replace").strip().splitlines()
        raise OSError(words[-1] if words else "no packet socket was opened") from None
    finally:
        ours.close()
        theirs.close()
    source = socket.socket(fileno=handle)
    try:
        program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in _FILTER))
        source.setsockopt(
            socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HL", len(_FILTER), ctypes.addressof(program))
        )
        source.bind((INTERFACE, _ETH_P_ALL))
    except OSError as error:
        source.close()
        raise OSError(f"the container's {INTERFACE} cannot be listened to: {error.strerror}") from None
    return source


def parse(packet: bytes) -> tuple[tuple[str, ...], str]:
    """Return the names that a packet looks up, and what it is sent to; nothing for what cannot be read."""
    import dpkt

    try:
        network = dpkt.ethernet.Ethernet(packet).data
        transport = network.data
        tcp = isinstance(transport, dpkt.tcp.TCP)
        if not tcp and not isinstance(transport, dpkt.udp.UDP):
            return (), ""
        version = socket.AF_INET if isinstance(network, dpkt.ip.IP) else socket.AF_INET6
        where = socket.inet_ntop(version, network.dst)
        shown = where if version == socket.AF_INET else f"[{where}]"
        address = f"{'tcp' if tcp else 'udp'} {shown}:{transport.dport}"
        names = () if tcp or transport.dport != 53 else _names(bytes(transport.data))
        return names, "" if names and where == RESOLVER else address
    except Exception:
        # The library promises nothing about which errors bytes of this kind end in.
        return (), ""


def _names(payload: bytes) -> tuple[str, ...]:
    import dpkt

    # Only the first question is looked at: no resolver takes two, and hundreds in a packet that point at each other
    # would keep us busy.
    alone = payload[:4] + b"\0\1" + bytes(6) + payload[_DNS_HEADER : _DNS_HEADER + _MAX_QUESTION]
    try:
        questions = dpkt.dns.DNS(alone).qd if payload[4:6] != b"\0\0" else []
        return tuple(printable(str(one.name).lower())[:_MAX_NAME] for one in questions)
    except Exception:
        # See above: the address it was sent to is told all the same.
        return ()
