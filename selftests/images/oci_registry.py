"""A small image registry on loopback, with the faults of large ones, and images small enough to make in a test."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pytest_otval.images.oci import ARCHITECTURE, OCI_CONFIG, OCI_LAYER, OCI_MANIFEST

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
DOCKER = {
    OCI_INDEX: "application/vnd.docker.distribution.manifest.list.v2+json",
    OCI_MANIFEST: "application/vnd.docker.distribution.manifest.v2+json",
    OCI_CONFIG: "application/vnd.docker.container.image.v1+json",
    f"{OCI_LAYER}+gzip": "application/vnd.docker.image.rootfs.diff.tar.gzip",
}
FOREIGN = "s390x" if ARCHITECTURE != "s390x" else "amd64"


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer(files: dict[str, bytes | str | None], mode: int = 0o755, owner: tuple[int, int] = (0, 0)) -> bytes:
    """Make a layer: bytes are a file, text is a link to it, None is a folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.mode, (info.uid, info.gid) = mode, owner
            if content is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
            else:
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    return out.getvalue()


@dataclass
class TinyImage:
    """Blobs by digest, an index with this machine's image and a foreign one, and the tars of its layers."""

    config: dict
    layers: list[bytes]
    architecture: str = ARCHITECTURE
    docker: bool = False
    """Docker's media types instead of OCI's."""
    blobs: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self):
        diff_ids = [digest_of(one) for one in self.layers]
        file = {"os": "linux", "architecture": self.architecture, "config": self.config}
        file["rootfs"] = {"type": "layers", "diff_ids": diff_ids}
        self.config_bytes = json.dumps(file).encode()
        packed = [gzip.compress(one, mtime=0) for one in self.layers]
        self.manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": self.type(OCI_MANIFEST),
                "config": self.describe(self.config_bytes, OCI_CONFIG),
                "layers": [self.describe(one, f"{OCI_LAYER}+gzip") for one in packed],
            }
        ).encode()
        here = {"platform": {"os": "linux", "architecture": self.architecture}}
        other = {"digest": "sha256:" + "0" * 64, "size": 1, "platform": {"os": "linux", "architecture": FOREIGN}}
        entries = [other, {**self.describe(self.manifest, OCI_MANIFEST), **here}]
        self.index = json.dumps({"schemaVersion": 2, "mediaType": self.type(OCI_INDEX), "manifests": entries}).encode()
        for blob in (self.config_bytes, self.manifest, self.index, *packed):
            self.blobs[digest_of(blob)] = blob

    def type(self, name):
        return DOCKER[name] if self.docker else name

    def describe(self, data, kind):
        return {"mediaType": self.type(kind), "digest": digest_of(data), "size": len(data)}

    @property
    def digest(self):
        return digest_of(self.index)

    def oci_archive(self, prefix="", **changed: bytes) -> bytes:
        """Return the image as a tar of its OCI layout; ``changed`` are blobs by the first digits of their digest."""
        top = {"schemaVersion": 2, "manifests": [self.describe(self.index, OCI_INDEX)]}
        files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(top).encode()}
        for digest, data in self.blobs.items():
            name = digest.removeprefix("sha256:")
            files[f"blobs/sha256/{name}"] = changed.get(f"b{name[:8]}", data)
        return layer({prefix + name: data for name, data in files.items()})

    def docker_archive(self) -> bytes:
        """Return the image as older versions of ``docker save`` wrote it: with links for what is there twice."""
        files, names, seen = {}, [], {}
        for number, data in enumerate(self.layers):
            name = f"{number:064x}/layer.tar"
            files[name] = f"../{seen[data]}" if data in seen else data
            seen.setdefault(data, name)
            names.append(name)
        config = f"{digest_of(self.config_bytes)[7:]}.json"
        saved = json.dumps([{"Config": config, "RepoTags": ["lib/app:1"], "Layers": names}]).encode()
        return layer({config: self.config_bytes, **files, "manifest.json": saved})


@dataclass
class Fault:
    """What happens to requests that are let in and whose path holds ``where``, ``times`` times."""

    where: str = ""
    what: int | str = ""
    """A status, or "cut", "reset", "slow", "other bytes"."""
    times: int = 0
    headers: dict[str, str] = field(default_factory=dict)


class OciRegistry:
    """Serves what is pushed; ``seen`` are method and path of each request, ``shown`` each Authorization."""

    def __init__(self, auth: str = "", login: tuple[str, str] | None = None):
        """``auth`` is "", "basic" or "bearer"; with a ``login`` nobody else gets in."""
        self.auth, self.login = auth, login
        self.content: dict[str, bytes] = {}
        self.faults: list[Fault] = []
        self.seen: list[tuple[str, str]] = []
        self.shown: list[str] = []
        self.token = "secret-token"
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"registry": self}))
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.stop()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def push(self, image: TinyImage, name: str = "lib/app", tag: str = "1") -> str:
        """Publish an image; return its name with the tag."""
        for digest, data in image.blobs.items():
            self.content[f"/v2/{name}/blobs/{digest}"] = data
            self.content[f"/v2/{name}/manifests/{digest}"] = data
        self.content[f"/v2/{name}/manifests/{tag}"] = image.index
        return f"{self.host}/{name}:{tag}"

    def fail(self, where: str, what: int | str, times: int = 10**6, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.faults.append(Fault(where, what, times, named))

    def take_fault(self, path: str) -> Fault:
        fault = next((one for one in self.faults if one.where in path and one.times > 0), Fault())
        fault.times -= 1
        return fault

    def count(self, where: str) -> int:
        return sum(where in path for _, path in self.seen)


class _Handler(BaseHTTPRequestHandler):
    registry: OciRegistry
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        registry = self.registry
        registry.seen.append((self.command, self.path))
        registry.shown.append(self.headers.get("Authorization", ""))
        is_token = self.path.startswith("/token?")
        if not is_token and not self.is_let_in():
            return self.answer(401, b"{}", {"WWW-Authenticate": self.challenge()})
        fault = registry.take_fault(self.path)
        if isinstance(fault.what, int):
            return self.answer(fault.what, b"{}", fault.headers)
        if fault.what == "reset":
            self.close_connection = True
            return None
        if fault.what == "slow":
            time.sleep(1)
        if is_token:
            return self.give_token(fault)
        data = registry.content.get(self.path)
        if data is None:
            return self.answer(404, b"{}")
        headers = {"Docker-Content-Digest": digest_of(data), "Content-Type": self.kind(data)}
        if fault.what == "other bytes":
            data = bytes(len(data))
        return self.answer(200, data, headers, cut=fault.what == "cut")

    do_HEAD = do_GET

    def kind(self, data):
        with suppress(ValueError, RecursionError, AttributeError):
            return json.loads(data).get("mediaType", "application/octet-stream")
        return "application/octet-stream"

    def basic(self):
        return "Basic " + base64.b64encode(":".join(self.registry.login or ("", "")).encode()).decode()

    def give_token(self, fault):
        if self.registry.login and self.headers.get("Authorization") != self.basic():
            return self.answer(401, b"{}")
        body = json.dumps({"token": self.registry.token}).encode()
        return self.answer(200, body, cut=fault.what == "cut")

    def is_let_in(self):
        wanted = {"": None, "basic": self.basic(), "bearer": f"Bearer {self.registry.token}"}[self.registry.auth]
        return wanted is None or self.headers.get("Authorization") == wanted

    def challenge(self):
        if self.registry.auth == "basic":
            return 'Basic realm="registry"'
        return f'Bearer realm="http://{self.registry.host}/token",service="s",scope="repository:lib/app:pull"'

    def answer(self, status, body, headers=(), cut=False):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.close_connection = True

    def log_message(self, *args):
        pass
