"""An OpenAI-compatible server with seeded policies in place of a model: ``python -m selftests.llm.server --help``.

It prints its address, and ends at SIGTERM, or with ``--until-eof`` when nobody holds its input any more. ``GET /asked``
tells what it was asked.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from selftests.llm.policies import Model, Policies, step_of


class Counts:
    """What was asked so far, under a lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.requests = 0
        self.open = 0
        self.most = 0
        """Requests at a time."""
        self.headers: dict[str, str] = {}
        self.body: Any = None
        self._met: Counter[str] = Counter()
        self._attempts: Counter[str] = Counter()

    def begins(self, headers: Mapping[str, str], body: Any) -> None:
        with self._lock:
            self.requests += 1
            self.open += 1
            self.most = max(self.most, self.open)
            self.headers, self.body = dict(headers), body

    def ends(self) -> None:
        with self._lock:
            self.open -= 1

    def meets(self, model: Model, name: str, body: Mapping[str, Any]) -> bool:
        """Whether this request meets its model's fault, which some do only so many times."""
        if not model.fault or step_of(body["messages"]) < model.after:
            return False
        if model.fault == "no-format" and "response_format" not in body:
            return False
        with self._lock:
            key = _digest(name, body["messages"])
            self._met[key] += 1
            return model.times < 0 or self._met[key] <= model.times

    def attempt(self, name: str, body: Mapping[str, Any]) -> int:
        """Return which attempt this is: as the request says (``seed`` or ``user``), else by order of arrival."""
        for field in ("seed", "user"):
            if str(body.get(field, "")).isdecimal():
                return int(body[field])
        if any(message["role"] == "assistant" for message in body["messages"]):
            return 0
        with self._lock:
            key = _digest(name, body["messages"])
            self._attempts[key] += 1
            return self._attempts[key] - 1

    def as_dict(self) -> dict[str, Any]:
        return {"requests": self.requests, "most": self.most, "headers": self.headers, "body": self.body}


def _digest(*values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


class Handler(BaseHTTPRequestHandler):
    policies: Policies
    counts: Counts
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def handle_one_request(self) -> None:
        with suppress(ConnectionError):
            super().handle_one_request()

    def do_GET(self) -> None:
        match self.path:
            case "/health":
                self.send(200, {})
            case "/asked":
                self.send(200, self.counts.as_dict())
            case "/v1/models":
                self.send(200, {"object": "list", "data": [{"id": name} for name in self.policies.models]})
            case _:
                self.refuse(404, "no such page")

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(data)
            name = body["model"]
            assert isinstance(body["messages"], list)
        except (ValueError, KeyError, TypeError, AssertionError):
            return self.refuse(400, "the request is no JSON object with model and messages")
        if self.path != "/v1/chat/completions":
            return self.refuse(404, "no such page")
        model = self.policies.models.get(name)
        if model is None:
            return self.refuse(404, f"The model `{name}` does not exist.")
        self.counts.begins(self.headers, body)
        self.counted = True
        try:
            self.answer(name, model, body)
        finally:
            self.is_answered()

    def is_answered(self) -> None:
        """Count the request as open no longer. Whoever has all of an answer may ask again before we know that."""
        if self.counted:
            self.counts.ends()
        self.counted = False

    def answer(self, name: str, model: Model, body: Mapping[str, Any]) -> None:
        fault = model.fault if self.counts.meets(model, name, body) else ""
        if fault == "hang":
            # Until whoever asks gives up.
            self.connection.settimeout(600)
            self.connection.recv(1)
            self.close_connection = True
            return None
        if model.status and fault not in ("", "in-200"):
            key = self.headers.get("Authorization", "")
            text, retry_after = (one.replace("{authorization}", key) for one in (model.text, model.retry_after))
            return self.refuse(model.status, text, model.code, retry_after)
        said = self.policies.say(model, body, self.counts.attempt(name, body))
        usage = _usage(body, said["message"]) if model.usage else None
        if not body.get("stream") or fault in ("whole", "whole-cut", "in-200"):
            return self.send_whole(name, model, said, usage, fault)
        return self.send_pieces(name, model, body, said, usage, fault)

    def send_whole(self, name: str, model: Model, said: Mapping[str, Any], usage: Any, fault: str) -> None:
        choice = {"index": 0, "message": said["message"], "finish_reason": said["finish"]}
        answer: dict[str, Any] = {"id": "x", "object": "chat.completion", "model": name, "choices": [choice]}
        if fault == "in-200":
            return self.send(200, {"error": {"message": model.text, "code": model.status}})
        data = json.dumps({**answer, "usage": usage} if usage else answer).encode()
        sent = data[: len(data) // 2] if fault in ("disconnect", "cut", "whole-cut", "wrong-json") else data
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent if fault == "wrong-json" else data)))
        self.end_headers()
        self.wfile.write(sent)
        self.close_connection = len(sent) < len(data)

    def send_pieces(
        self, name: str, model: Model, body: Mapping[str, Any], said: Mapping[str, Any], usage: Any, fault: str
    ) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        # Without chunks an end that comes too early looks like any other.
        self.close_connection = fault == "cut"
        if not self.close_connection:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        pieces = list(_pieces(said))
        for number, piece in enumerate(pieces):
            if fault in ("disconnect", "cut", "wrong-json") and number >= len(pieces) // 2:
                break
            if fault == "slow":
                time.sleep(model.seconds)
            self.event({"id": "x", "object": "chat.completion.chunk", "model": name, "choices": [piece]})
        if fault == "wrong-json":
            self.chunk(b'data: {"choices": [{"del\n\n')
        if fault in ("disconnect", "cut"):
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        if usage and (body.get("stream_options") or {}).get("include_usage"):
            self.event({"id": "x", "model": name, "choices": [], "usage": usage})
        self.is_answered()
        self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")

    def event(self, value: Any) -> None:
        self.chunk(b"data: " + json.dumps(value).encode() + b"\n\n")

    def chunk(self, data: bytes) -> None:
        self.wfile.write(data if self.close_connection else b"%x\r\n%s\r\n" % (len(data), data))

    def refuse(self, status: int, text: str, code: str = "", retry_after: str = "") -> None:
        error = {"message": text, "type": "invalid_request_error", "code": code or None}
        self.send(status, {"error": error}, {"Retry-After": retry_after} if retry_after else {})

    def send(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)


def _pieces(said: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    message = said["message"]
    yield _piece({"role": "assistant"})
    for name in ("reasoning", "reasoning_content"):
        if name in message:
            yield _piece({name: message[name]})
    content = message["content"]
    if isinstance(content, str):
        for start in range(0, len(content), 40):
            yield _piece({"content": content[start : start + 40]})
    else:
        yield _piece({"content": content})
    for number, call in enumerate(message.get("tool_calls", ())):
        index = 0 if said.get("same_index") else number
        arguments = call["function"]["arguments"]
        texts = [arguments] if not isinstance(arguments, str) else [arguments[:5], arguments[5:]]
        yield _piece(
            {"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": texts[0]}}]}
        )
        for text in texts[1:]:
            yield _piece({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
    yield _piece({}, said["finish"])


def _piece(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


def _usage(body: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """Four characters are a token; all but the last two messages come from a cache."""
    sizes = [len(json.dumps(one)) // 4 for one in body["messages"]]
    return {
        "prompt_tokens": sum(sizes),
        "completion_tokens": len(json.dumps(message)) // 4,
        "total_tokens": sum(sizes) + len(json.dumps(message)) // 4,
        "prompt_tokens_details": {"cached_tokens": sum(sizes[:-2])},
        "completion_tokens_details": {"reasoning_tokens": len(message.get("reasoning_content") or "") // 4},
    }


class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policies", type=Path, metavar="FILE", help="TOML, as selftests/llm/policies.py explains")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="default: any that is free")
    parser.add_argument("--until-eof", action="store_true", help="end with what started it, whatever ends that")
    arguments = parser.parse_args()
    policies = Policies.read(arguments.policies) if arguments.policies else Policies()
    handler = type("Bound", (Handler,), {"policies": policies, "counts": Counts()})
    server = Server((arguments.host, arguments.port), handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if arguments.until_eof:
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    print(f"http://{arguments.host}:{server.server_address[1]}/v1", flush=True)
    server.serve_forever(poll_interval=0.05)


class Running:
    """A server process, for tests; ``url`` is its base_url."""

    def __init__(self, policies: Path | None = None) -> None:
        words = ["--policies", str(policies)] if policies else []
        argv = [sys.executable, "-m", "selftests.llm.server", "--until-eof", *words]
        pipe, root = subprocess.PIPE, Path(__file__).parents[2]
        self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, cwd=root)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url, "the server did not start"

    def asked(self) -> dict[str, Any]:
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/asked") as answer:
            return json.load(answer)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


if __name__ == "__main__":
    main()
