"""A small Hugging Face hub on loopback, with the shapes of the large one's answers, and its faults on request.

It has what ``huggingface_hub`` asks for: information about a repository, its tree, single paths, files by HEAD and GET
with ranges, large files behind a link to another host, uploads (preupload, LFS batch, PUT, verify, commit). Every
commit makes a new revision, and old ones can still be read.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

OF_UPLOADS = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
"""huggingface_hub's own upload is told so by the library below it."""

LARGE_BYTES = 1000
"""From here on a file is kept as large file (LFS)."""
TOKEN = "hf_of_these_tests"


@dataclass
class Repository:
    """Its files by path, at each revision."""

    revisions: list[dict[str, bytes]] = field(default_factory=lambda: [{}])
    gated: bool = False
    private: bool = False

    @property
    def files(self) -> dict[str, bytes]:
        return self.revisions[-1]

    def sha(self, number: int = -1) -> str:
        return hashlib.sha1(str(number % len(self.revisions)).encode()).hexdigest()

    def at(self, revision: str) -> dict[str, bytes] | None:
        shas = {self.sha(number): files for number, files in enumerate(self.revisions)}
        return self.files if revision == "main" else shas.get(revision)


@dataclass
class Fault:
    """What happens ``times`` times to a request of ``method`` with ``part`` in its path."""

    part: str
    method: str = "GET"
    times: int = 1
    after: int = 0
    """So many such requests are answered before."""
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    cut: int = -1
    """The body ends after so many bytes, though its length was promised."""


class FakeHub:
    """Use as a context manager; ``url`` is for HF_ENDPOINT."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        """By ``datasets/ORG/NAME`` or ``models/ORG/NAME``."""
        self.blobs: dict[str, bytes] = {}
        """Large files by sha256; what was uploaded and is in no commit yet among them."""
        self.faults: list[Fault] = []
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        """Method, path and headers of each request, names of headers in lower case."""
        self.failed = threading.Event()
        """Set as soon as a fault came to pass."""
        self.page = 1000
        """So many entries of a tree come at a time."""

    def add(self, repository: str, files: dict[str, bytes] | None = None, **options) -> Repository:
        found = Repository([dict(files or {})], **options)
        self.blobs |= {_sha256(data): data for data in found.files.values()}
        self.repositories[repository] = found
        return found

    def fails(self, part: str, **fault) -> None:
        self.faults.append(Fault(part, **fault))

    def count(self, method: str, part: str = "") -> int:
        return sum(one == method and part in path for one, path, _ in self.asked)

    def __enter__(self) -> FakeHub:
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        # Another origin than the hub's, as that of its large files is.
        self.cdn = f"http://localhost:{self.port}/cdn"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        pass

    def handle_one_request(self) -> None:
        with suppress(ConnectionError):
            super().handle_one_request()

    def do_GET(self) -> None:
        self.answer()

    do_HEAD = do_POST = do_PUT = do_GET

    # --- answers ---

    def answer(self) -> None:
        url = urlsplit(self.path)
        self.query = {key: values[0] for key, values in parse_qs(url.query).items()}
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.hub.asked.append((self.command, url.path, headers))
        self.fault = next((one for one in self.hub.faults if self.hits(one, url.path)), None)
        if self.fault is not None:
            self.fault.times -= 1
            self.hub.failed.set()
            if self.fault.status:
                return self.say(self.fault.status, b"{}", self.fault.headers)
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        match parts:
            case ["cdn", oid]:
                return self.put(oid) if self.command == "PUT" else self.send_file(self.hub.blobs[oid], {})
            case ["lfs", "verify"]:
                wanted = json.loads(self.body)
                return self.say(200 if len(self.hub.blobs.get(wanted["oid"], b"")) == wanted["size"] else 404)
            case ["api", "validate-yaml"]:
                # Of a README that is uploaded.
                return self.say_json({"errors": [], "warnings": []})
            case ["api", "repos", "create"]:
                return self.create(json.loads(self.body))
            case ["api", kind, owner, name, *rest]:
                return self.with_repository(f"{kind}/{owner}/{name}", lambda found: self.api(found, rest))
            case ["datasets", owner, name, *rest]:
                name = name.removesuffix(".git")
                return self.with_repository(f"datasets/{owner}/{name}", lambda found: self.content(found, rest))
            case [owner, name, *rest]:
                name = name.removesuffix(".git")
                return self.with_repository(f"models/{owner}/{name}", lambda found: self.content(found, rest))
        return self.say(404)

    def hits(self, fault: Fault, path: str) -> bool:
        if not (fault.times > 0 and fault.method == self.command and fault.part in path):
            return False
        fault.after -= 1
        return fault.after < 0

    def create(self, asked: dict) -> None:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.say(401, b'{"error": "Invalid username or password."}')
        name = f"{asked['type']}s/{asked['organization']}/{asked['name']}"
        url = f"{self.hub.url}/{name}"
        if name in self.hub.repositories:
            return self.say(409, json.dumps({"error": "You already created this dataset repo", "url": url}).encode())
        # Versions of the library say it in two ways.
        self.hub.add(name, private=asked.get("private") or asked.get("visibility") == "private")
        return self.say_json({"url": url})

    def with_repository(self, name: str, answer) -> None:
        found, known = self.hub.repositories.get(name), self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if found is None or (found.private and not known):
            # So that nobody learns which private ones there are; who is not known at all is asked to log in.
            return self.say(404 if known else 401, headers={"X-Error-Code": "RepoNotFound"})
        self.name = name
        return answer(found)

    def api(self, found: Repository, rest: list[str]) -> None:
        match rest:
            case [] | ["revision", _]:
                return self.info(found, rest[-1] if rest else "main")
            case ["tree", revision, *path]:
                return self.tree(found, revision, "/".join(path))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.say(403, b'{"error": "Forbidden"}')
        match rest:
            case ["preupload", _]:
                asked = json.loads(self.body)["files"]
                modes = [
                    {
                        "path": one["path"],
                        "uploadMode": "lfs" if one["size"] >= LARGE_BYTES else "regular",
                        "shouldIgnore": False,
                    }
                    for one in asked
                ]
                return self.say_json({"files": modes})
            case ["commit", _]:
                return self.commit(found)
        return self.say(404)

    def info(self, found: Repository, revision: str) -> None:
        files = found.at(revision)
        if files is None:
            return self.say(404, headers={"X-Error-Code": "RevisionNotFound"})
        siblings = [{"rfilename": path} for path in sorted(files)]
        kind, _, name = self.name.partition("/")
        sha = found.sha() if revision == "main" else revision
        values = {"_id": "0" * 24, "id": name, "author": name.split("/")[0], "sha": sha, "siblings": siblings}
        values |= {"private": found.private, "gated": "manual" if found.gated else False, "disabled": False}
        values |= {"tags": [], "downloads": 0, "likes": 0, "lastModified": "2026-01-01T00:00:00.000Z"}
        values |= {"createdAt": "2026-01-01T00:00:00.000Z", **({"modelId": name} if kind == "models" else {})}
        return self.say_json(values)

    def tree(self, found: Repository, revision: str, folder: str) -> None:
        files = found.at(revision)
        if files is None:
            return self.say(404, headers={"X-Error-Code": "RevisionNotFound"})
        above = f"{folder}/" if folder else ""
        below = [path.removeprefix(above) for path in files if path.startswith(above)]
        if not below and folder:
            return self.say(404, headers={"X-Error-Code": "EntryNotFound"})
        deep = self.query.get("recursive", "false").lower() in ("true", "1")
        names = sorted(set(below) if deep else {path.split("/")[0] for path in below})
        start = int(self.query.get("cursor", 0))
        entries = [_entry(files, above + name) for name in names[start : start + self.hub.page]]
        headers = {}
        if start + self.hub.page < len(names):
            after = f"{self.hub.url}{urlsplit(self.path).path}?cursor={start + self.hub.page}"
            headers["Link"] = f'<{after}>; rel="next"'
        return self.say_json(entries, headers)

    def content(self, found: Repository, rest: list[str]) -> None:
        match rest:
            case ["info", "lfs", "objects", "batch"]:
                return self.batch()
            case ["resolve", revision, *path]:
                if found.gated and self.headers.get("Authorization") != f"Bearer {TOKEN}":
                    return self.say(401, headers={"X-Error-Code": "GatedRepo"})
                files = found.at(revision)
                data = None if files is None else files.get("/".join(path))
                if data is None:
                    return self.say(404, headers={"X-Error-Code": "EntryNotFound"})
                return self.resolve(found, data)
        return self.say(404)

    def resolve(self, found: Repository, data: bytes) -> None:
        headers = {"X-Repo-Commit": found.sha(), "Accept-Ranges": "bytes"}
        if len(data) < LARGE_BYTES:
            return self.send_file(data, {**headers, "ETag": f'"{_blob_id(data)}"'})
        oid = _sha256(data)
        headers |= {"X-Linked-Etag": f'"{oid}"', "X-Linked-Size": str(len(data)), "ETag": f'"{_blob_id(data)}"'}
        return self.say(302, headers={**headers, "Location": f"{self.hub.cdn}/{oid}"})

    def send_file(self, data: bytes, headers: dict[str, str]) -> None:
        wanted = self.headers.get("Range")
        if wanted is None:
            return self.say(200, data, headers)
        first, last = wanted.removeprefix("bytes=").split("-")
        start, end = int(first), min(int(last or len(data)), len(data) - 1)
        headers = {**headers, "Content-Range": f"bytes {start}-{end}/{len(data)}"}
        return self.say(206, data[start : end + 1], headers)

    # --- uploads ---

    def batch(self) -> None:
        asked = json.loads(self.body)
        objects = []
        for one in asked["objects"]:
            entry = {"oid": one["oid"], "size": one["size"]}
            if one["oid"] not in self.hub.blobs:
                verify = {"href": f"{self.hub.url}/lfs/verify", "header": {}}
                entry["actions"] = {"upload": {"href": f"{self.hub.cdn}/{one['oid']}"}, "verify": verify}
            objects.append(entry)
        return self.say_json({"transfer": "basic", "objects": objects})

    def put(self, oid: str) -> None:
        if _sha256(self.body) != oid:
            return self.say(400)
        self.hub.blobs[oid] = self.body
        return self.say(200)

    def commit(self, found: Repository) -> None:
        files = dict(found.files)
        for line in self.body.splitlines():
            item = json.loads(line)
            value = item["value"]
            match item["key"]:
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    if value["oid"] not in self.hub.blobs:
                        return self.say(400, b'{"error": "Your push was rejected: a large file is missing"}')
                    files[value["path"]] = self.hub.blobs[value["oid"]]
        found.revisions.append(files)
        url = f"{self.hub.url}/{self.name}/commit/{found.sha()}"
        return self.say_json({"success": True, "commitOid": found.sha(), "commitUrl": url, "hookOutput": ""})

    # --- the wire ---

    def say_json(self, values, headers: dict[str, str] | None = None) -> None:
        self.say(200, json.dumps(values).encode(), {"Content-Type": "application/json", **(headers or {})})

    def say(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.fault is not None and self.fault.cut >= 0:
            self.wfile.write(body[: self.fault.cut])
            self.close_connection = True
            return
        self.wfile.write(body)


def _entry(files: dict[str, bytes], path: str) -> dict:
    if path not in files:
        return {"type": "directory", "oid": "0" * 40, "size": 0, "path": path}
    data = files[path]
    entry = {"type": "file", "oid": _blob_id(data), "size": len(data), "path": path}
    if len(data) >= LARGE_BYTES:
        entry["lfs"] = {"oid": _sha256(data), "size": len(data), "pointerSize": 130}
    return entry


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
