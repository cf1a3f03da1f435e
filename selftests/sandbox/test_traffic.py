"""What is made of packets, which a container may fill with anything."""

import fcntl
import resource
import socket
import struct
import time

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.sandbox import traffic
from pytest_otval.sandbox.network import RESOLVER
from pytest_otval.sandbox.traffic import MAX_KEPT, Traffic, listening, parse


def ip4(transport, proto, to):
    packet = dpkt.ip.IP(src=b"\x0a\0\x02\x64", dst=socket.inet_aton(to), p=proto, data=transport)
    packet.len = len(packet)
    return bytes(dpkt.ethernet.Ethernet(type=dpkt.ethernet.ETH_TYPE_IP, data=packet))


def udp(to, port, payload=b""):
    return ip4(dpkt.udp.UDP(sport=4000, dport=port, data=payload, ulen=8 + len(payload)), dpkt.ip.IP_PROTO_UDP, to)


def tcp(to, port):
    return ip4(dpkt.tcp.TCP(sport=4000, dport=port, flags=dpkt.tcp.TH_SYN), dpkt.ip.IP_PROTO_TCP, to)


def query(*labels):
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return struct.pack("!6H", 1, 0x100, 1, 0, 0, 0) + name + struct.pack("!2H", 1, 1)


def test_beginning_of_a_connection():
    assert parse(tcp("192.0.2.1", 443)) == ((), "tcp 192.0.2.1:443")


def test_name_asked_of_our_resolver():
    assert parse(udp(RESOLVER, 53, query(b"PyPI", b"org"))) == (("pypi.org",), "")


def test_name_asked_of_another_resolver():
    assert parse(udp("192.0.2.9", 53, query(b"a", b"b"))) == (("a.b",), "udp 192.0.2.9:53")


def test_what_is_no_query_at_the_port_of_queries():
    assert parse(udp(RESOLVER, 53, b"\xff" * 40)) == ((), f"udp {RESOLVER}:53")


def test_ip6():
    data = dpkt.tcp.TCP(sport=1, dport=80, flags=dpkt.tcp.TH_SYN)
    packet = dpkt.ip6.IP6(src=bytes(16), dst=bytes(15) + b"\1", nxt=dpkt.ip.IP_PROTO_TCP, data=data, plen=20)
    packet.extension_hdrs = {}
    frame = bytes(dpkt.ethernet.Ethernet(type=dpkt.ethernet.ETH_TYPE_IP6, data=packet))
    assert parse(frame) == ((), "tcp [::1]:80")


@given(st.binary(max_size=200))
def test_any_name_is_printable_and_short(label):
    packet = udp(RESOLVER, 53, query(label[:63], b"\x1b[31m", b"\n"))
    names, _ = parse(packet)
    assert all(name.isprintable() and len(name) <= 253 for name in names)


@given(st.binary(max_size=300))
def test_any_bytes(packet):
    names, address = parse(packet)
    assert isinstance(names, tuple)
    assert isinstance(address, str)


WHOLE = [tcp("192.0.2.1", 443), udp(RESOLVER, 53, query(b"pypi", b"org"))]


@given(st.sampled_from(WHOLE), st.data())
def test_cut_and_spoiled_packets(packet, data):
    spoiled = bytearray(packet)
    for _ in range(3):
        spoiled[data.draw(st.integers(0, len(packet) - 1))] = data.draw(st.integers(0, 255))
    parse(bytes(spoiled[: data.draw(st.integers(0, len(packet)))]))


def test_a_name_that_points_at_itself():
    names, address = parse(udp("192.0.2.1", 53, struct.pack("!6H", 1, 0x100, 1, 0, 0, 0) + b"\xc0\x0c\0\1\0\1"))
    assert address == "udp 192.0.2.1:53"
    assert names == ()


def test_of_many_questions_the_first_is_looked_at():
    name = b"\1a" * 60 + b"\1b\0"
    many = struct.pack("!6H", 1, 0x100, 301, 7, 7, 7) + name + b"\0\1\0\1" + b"\xc0\x0c\0\1\0\1" * 300
    assert parse(udp(RESOLVER, 53, many)) == (("a." * 60 + "b",), "")


def test_a_query_without_a_question():
    assert parse(udp(RESOLVER, 53, struct.pack("!6H", 1, 0x100, 0, 0, 0, 0))) == ((), f"udp {RESOLVER}:53")


def test_descriptors_above_those_of_select(pair, monkeypatch):
    """A run with many workers and images has many open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2048)), hard))
    ours, theirs = pair
    high = socket.socket(fileno=fcntl.fcntl(ours, fcntl.F_DUPFD, 1500))
    monkeypatch.setattr(traffic, "_packet_socket", lambda pid: high)
    heard = Traffic()
    with listening(heard, 1):
        theirs.send(tcp("192.0.2.1", 443))
        while heard._packets == 0:
            time.sleep(0.01)
    assert heard.take().addresses == ("tcp 192.0.2.1:443",)


def test_take_gives_what_is_new():
    heard = Traffic(unheard="")
    heard.hear(tcp("192.0.2.1", 443))
    heard.hear(tcp("192.0.2.1", 443))
    heard.hear(udp(RESOLVER, 53, query(b"x")))
    first = heard.take()
    assert (first.names, first.addresses, first.more) == (("x",), ("tcp 192.0.2.1:443",), 0)
    heard.hear(tcp("192.0.2.2", 80))
    assert heard.take().addresses == ("tcp 192.0.2.2:80",)


def test_what_is_kept_is_bounded():
    heard = Traffic(unheard="")
    for port in range(1, MAX_KEPT + 51):
        heard.hear(tcp("192.0.2.1", port))
    told = heard.take()
    assert (len(told.addresses), told.more) == (MAX_KEPT, 50)


def test_nothing_is_said_to_be_heard_before_somebody_listens():
    assert Traffic().take().unheard


def test_a_process_that_is_gone(tmp_path):
    heard = Traffic()
    with listening(heard, 2**22 + 1):
        pass
    assert heard.take().unheard


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    yield ours, theirs
    ours.close()
    theirs.close()


def test_a_flood_is_heard_no_longer_than_that(pair, monkeypatch):
    monkeypatch.setattr(traffic, "MAX_PACKETS", 5)
    heard, (ours, theirs) = Traffic(), pair
    heard.begin(ours)
    for port in range(8):
        theirs.send(tcp("192.0.2.1", 1000 + port))
    assert heard.drain() is False
    told = heard.take()
    assert len(told.addresses) == 5
    assert told.more > 0
