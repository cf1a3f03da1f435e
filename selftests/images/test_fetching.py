"""ADD of an address, against a server on loopback."""

import hashlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tenacity import wait_none

from pytest_otval.core import Conclusion
from pytest_otval.images import fetching
from pytest_otval.images.copying import CopyError, Source
from pytest_otval.images.fetching import fetch

CONTENT = b"content" * 1000
RIGHT = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []
        self.fail_first = 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        if self.server.fail_first:
            self.server.fail_first -= 1
            self.send_error(503)
        elif self.path == "/away":
            self.answer(302, b"", Location="/file")
        elif self.path == "/local":
            self.answer(302, b"", Location="file:///etc/passwd")
        elif self.path == "/cut":
            self.answer(200, CONTENT[:10], length=len(CONTENT))
        elif self.path == "/slow":
            self.answer(200, b"", length=len(CONTENT))
            for byte in CONTENT:
                self.wfile.write(bytes([byte]))
                time.sleep(0.02)
        elif self.path == "/file":
            self.answer(200, CONTENT, **{"Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT"})
        else:
            self.send_error(404)

    def answer(self, status, body, length=None, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(fetching, "_is_own", lambda address: False)
    monkeypatch.setattr(fetching, "_WAIT", wait_none())
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def get(server, tmp_path):
    def run(path="/file", checksum=RIGHT, seconds=20.0, network="public", url=None):
        source = Source("file", None, url=url or server.url + path, checksum=checksum)
        target = tmp_path / "fetched"
        fetch(source, target, "environment/Dockerfile:2: ADD", time.monotonic() + seconds, network)
        return target

    return run


@pytest.mark.parametrize("path", ["/file", "/away"])
def test_right_file(get, path):
    target = get(path)
    assert target.read_bytes() == CONTENT
    assert target.stat().st_mtime == 1445412480


def test_wrong_digest_is_the_tasks_fault(get):
    with pytest.raises(CopyError, match="sha256 is " + RIGHT):
        get(checksum="0" * 64)


def test_missing_file_is_the_tasks_fault(get, server):
    with pytest.raises(CopyError, match="answers 404"):
        get("/nothing")
    assert server.asked == ["/nothing"]


def test_passing_fault_is_tried_again(get, server):
    server.fail_first = 2
    assert get().read_bytes() == CONTENT
    assert len(server.asked) == 3


@pytest.mark.parametrize("path", ["/cut", "/file"])
def test_no_whole_answer_is_the_networks_fault(get, server, path):
    server.fail_first = 9 if path == "/file" else 0
    with pytest.raises(Conclusion) as caught:
        get(path)
    assert caught.value.reason == "network-unreachable"
    assert caught.value.headline.startswith("environment/Dockerfile:2: ADD: 127.0.0.1")
    assert len(server.asked) == 3


def test_nobody_there(get):
    with pytest.raises(Conclusion) as caught:
        get(url="http://127.0.0.1:1/x")
    assert caught.value.reason == "network-unreachable"


def test_offline_asks_nobody(get, server):
    with pytest.raises(Conclusion, match="offline") as caught:
        get(network="none")
    assert caught.value.reason == "network-unreachable"
    assert server.asked == []


def test_trickle_ends_with_the_builds_time(get):
    with pytest.raises(Conclusion) as caught:
        get("/slow", seconds=0.3)
    assert caught.value.reason == "build-timeout"


def test_too_large(get, monkeypatch):
    monkeypatch.setattr(fetching, "MAX_BYTES", 100)
    with pytest.raises(CopyError, match="more than"):
        get()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("file:///etc/passwd", "no http"),
        ("http://user:secret@127.0.0.1/x", "with a user"),
        ("http://[::1", "no address"),
        ("http:///x", "no http"),
        ("http://127.0.0.1:port/x", "no address"),
    ],
)
def test_strange_addresses(get, url, words):
    with pytest.raises(CopyError, match=words) as caught:
        get(url=url)
    assert "secret" not in str(caught.value)


def test_redirect_to_another_scheme(get):
    with pytest.raises(CopyError, match="not allowed"):
        get("/local")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "0.0.0.0", "0x7f000001"])
def test_this_machine_is_not_asked(tmp_path, host):
    source = Source("x", None, url=f"http://{host}:1/x", checksum=RIGHT)
    with pytest.raises(CopyError, match="this machine"):
        fetch(source, tmp_path / "fetched", "x", time.monotonic() + 5, "public")
