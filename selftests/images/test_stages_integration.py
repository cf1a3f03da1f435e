"""Several stages, and what COPY and ADD do to files that are there, in real containers."""

import bz2
import gzip
import hashlib
import io
import lzma
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images import fetching
from pytest_otval.images.added import zstd
from selftests.images.merged import merged

pytestmark = pytest.mark.integration

BUILDER = """\
FROM tiny AS Builder
RUN mkdir -p /out/sub/deep && cd /out && echo built > sub/x && echo y > sub/deep/y && echo top > top.txt \
 && echo hidden > .hidden && ln -s sub/x link && ln -s /out/sub away && ln -s nothing nowhere && chmod 4751 top.txt \
 && chmod 701 sub
"""
OWNERS = "RUN chown 5:6 /out/sub/x && chown -h 7:8 /out/link && chown 9:10 /out/sub\n"


@pytest.fixture
def build(tiny, environment, request_of):
    def make(dockerfile, files=None):
        return merged(tiny().ensure(request_of(environment(dockerfile, files))).files)

    return make


@pytest.fixture
def owners(machine):
    return OWNERS if machine[0].maps_uids else ""


def test_copies_from_a_stage(build, owners):
    found = build(
        BUILDER + owners + "FROM tiny\nCOPY --from=builder /out /in\nCOPY --from=0 /out/sub/x /renamed\n"
        "COPY --from=BUILDER /out/link /out/away/deep /there/\nCOPY --from=builder /out/[^n]* /glob/\n"
        "COPY --from=builder /out/nomatch* /nothing/\nCOPY --from=builder --chmod=600 out/sub /modes\n"
        "COPY --from=tiny /etc/passwd /passwd\nCOPY --from=builder /out/sub /app/sub\n"
    )
    assert {path for path in found if path.startswith("/in/")} == {
        f"/in/{name}"
        for name in (".hidden", "away", "link", "nowhere", "sub", "sub/deep", "sub/deep/y", "sub/x", "top.txt")
    }
    assert (found["/in/top.txt"].mode, found["/in/sub"].mode) == (0o4751, 0o701)
    assert (found["/in/link"].content, found["/in/nowhere"].content) == (b"sub/x", b"nothing")
    assert found["/renamed"].content == b"built\n"
    assert (found["/there/link"].kind, found["/there/link"].content) == ("file", b"built\n")
    assert found["/there/y"].content == b"y\n"
    assert found["/glob/.hidden"].content == b"hidden\n"
    # A folder that a pattern matches gives its contents, and so does a link to one.
    assert {"/glob/x", "/glob/deep/y"} <= set(found)
    assert "/nothing" not in found
    assert (found["/modes/x"].mode, found["/modes/deep"].mode) == (0o600, 0o600)
    assert found["/passwd"].content.startswith(b"root:")
    assert (found["/app/sub/x"].content, found["/app/file"].content) == (b"built\n", b"old")
    if owners:
        assert (found["/in/sub/x"].owner, found["/in/link"].owner, found["/in/sub"].owner) == ((5, 6), (7, 8), (9, 10))
        assert found["/in"].owner == (0, 0)
        assert found["/app/sub"].owner == (7, 8), "a destination that is there keeps its owner"
        assert found["/passwd"].owner == (0, 0)


def test_chown_of_what_a_stage_made(build, owners):
    if not owners:
        pytest.skip("owners cannot be mapped here")
    found = build(BUILDER + owners + "FROM tiny\nCOPY --from=builder --chown=app:50 /out /in/deep\n")
    assert {seen.owner for path, seen in found.items() if path.startswith("/in")} == {(70, 50)}


def test_whole_stage_to_the_root(build):
    found = build(BUILDER + "FROM tiny\nRUN rm -r /app\nCOPY --from=builder / /\n")
    assert {"/out/sub/x", "/app/file"} <= set(found)
    assert not [path for path in found if path.startswith(("/proc/", "/sys/", "/dev/", "/.otval", "/.singularity.d"))]


def test_stage_over_a_stage_and_files_of_both(build):
    found = build(
        "FROM tiny AS base\nENV A=1\nWORKDIR /w\nRUN echo $A > a\nFROM base AS one\nRUN echo one > b\n"
        "FROM base\nRUN test ! -e b; cat a > c; pwd > d\nCOPY --from=one /w/b .\n"
    )
    assert {name: found[f"/w/{name}"].content for name in "abcd"} == {
        "a": b"1\n", "b": b"one\n", "c": b"1\n", "d": b"/w\n",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("COPY --from=builder /nothing /x", "'/nothing' is not in the image"),
        ("COPY --from=builder /out/nowhere /x", "is not in the image"),
        ("COPY --from=builder /out/* /x/", "'/out/nowhere' is not in the image"),
        ("COPY --from=builder /out/sub /app/file", "COPY ended with status 1"),
        ("COPY --from=builder /out/ /app/file/", "COPY ended with status 1"),
    ],
)
def test_faults_have_their_line(build, line, words):
    with pytest.raises(Conclusion) as caught:
        build(BUILDER + f"FROM tiny\n{line}\n")
    assert caught.value.reason == "build-failed"
    assert caught.value.headline.startswith("environment/Dockerfile:4: ")
    assert words in caught.value.headline


def test_only_what_is_needed_is_built(build):
    found = build(
        "FROM tiny AS broken\nRUN false\nFROM tiny AS fine\nRUN echo 1 > /f\nFROM tiny\nCOPY --from=fine /f /g\n"
    )
    assert found["/g"].content == b"1\n"


def tar(owner=0):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind in (("d", tarfile.DIRTYPE), ("d/f", tarfile.REGTYPE), ("d/l", tarfile.SYMTYPE)):
            header = tarfile.TarInfo(name)
            header.type, header.mode, header.linkname = kind, 0o751, "f" if kind == tarfile.SYMTYPE else ""
            header.uid = header.gid = owner
            header.size = 3 if kind == tarfile.REGTYPE else 0
            archive.addfile(header, io.BytesIO(b"abc"))
    return out.getvalue()


@pytest.fixture
def archives(environment):
    def write(dockerfile):
        folder = environment(dockerfile)
        packers = {"": bytes, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd.compress}
        for suffix, pack in packers.items():
            (folder / f"t.{suffix or 'tar'}").write_bytes(pack(tar(owner=1)))
        (folder / "fake.tar.gz").write_text("no archive")
        return folder

    return write


def test_add_unpacks(archives, tiny, request_of, machine):
    lines = "".join(f"ADD t.{suffix} /{suffix}\n" for suffix in ("tar", "gz", "bz2", "xz", "zst"))
    folder = archives("FROM tiny\n" + lines + "ADD fake.tar.gz /fake/\nADD --chown=root:root t.gz /roots/\n")
    found = merged(tiny().ensure(request_of(folder)).files)
    for name in ("tar", "gz", "bz2", "xz", "zst"):
        assert (found[f"/{name}/d/f"].content, found[f"/{name}/d/f"].mode) == (b"abc", 0o751)
        assert found[f"/{name}/d/l"].content == b"f"
        assert found[f"/{name}/d/f"].owner == ((1, 1) if machine[0].maps_uids else (0, 0))
    assert found["/fake/fake.tar.gz"].content == b"no archive"
    assert found["/roots/d/f"].owner == (0, 0)


def test_add_for_somebody(archives, tiny, request_of, machine):
    if not machine[0].maps_uids:
        pytest.skip("owners cannot be mapped here")
    folder = archives("FROM tiny\nADD --chown=app:50 t.gz /new/place/\nADD --chown=9 t.xz /app\n")
    found = merged(tiny().ensure(request_of(folder)).files)
    owners = {path: seen.owner for path, seen in found.items() if path.startswith("/new")}
    assert owners == dict.fromkeys(("/new", "/new/place", "/new/place/d", "/new/place/d/f", "/new/place/d/l"), (70, 50))
    assert (found["/app"].owner, found["/app"].mode) == ((5, 6), 0o750)
    assert (found["/app/d/f"].owner, found["/app/file"].owner) == ((9, 9), (5, 6))
    assert not [path for path in found if "otval" in path]


@pytest.fixture
def address(monkeypatch):
    """Serve one file on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "7")
            self.end_headers()
            self.wfile.write(b"fetched")

        def log_message(self, *words):
            pass

    monkeypatch.setattr(fetching, "_is_own", lambda address: False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_add_of_an_address(tiny, environment, request_of, address):
    right = f"--checksum=sha256:{hashlib.sha256(b'fetched').hexdigest()}"
    images = tiny()
    images._maker._builder._network = "public"
    folder = environment(
        f"FROM tiny\nADD {right} {address}/a/name.txt /d/\nADD {right} --chmod=755 {address}/x /e\n"
        f"ADD {right} {address}/x /app\n"
    )
    found = merged(images.ensure(request_of(folder)).files)
    assert {path: (found[path].content, found[path].mode) for path in ("/d/name.txt", "/e", "/app/x")} == {
        "/d/name.txt": (b"fetched", 0o600), "/e": (b"fetched", 0o755), "/app/x": (b"fetched", 0o600),
    }  # fmt: skip
    wrong = environment(f"FROM tiny\nRUN true\nADD --checksum=sha256:{'0' * 64} {address}/x /e\n")
    images = tiny()
    images._maker._builder._network = "public"
    with pytest.raises(Conclusion, match="Dockerfile:3: the file's sha256 is") as caught:
        images.ensure(request_of(wrong))
    assert caught.value.reason == "build-failed"
    with pytest.raises(Conclusion, match=r"Dockerfile:3: .*offline") as caught:
        tiny("other").ensure(request_of(wrong))
    assert caught.value.reason == "network-unreachable"
