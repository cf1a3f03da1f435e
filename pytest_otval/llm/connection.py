"""Connections to endpoints: one event loop a process, in a thread of its own.

Only an event loop ends what hangs at the moment it should, wherever that is: in a look-up of a name, in the handshake,
in a body of which one byte comes a second.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import threading
import time
from collections.abc import Coroutine
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from pytest_otval.core import OtvalUsageError
from pytest_otval.llm.secret import Secret

if TYPE_CHECKING:
    from httpx2 import Request
    from openai import AsyncOpenAI

T = TypeVar("T")

CONNECT_SECONDS = 20.0
_LOGGERS = ("httpcore2", "httpx2", "openai")
"""At the level of DEBUG they tell headers of answers, in which a server may repeat the key."""
_HEADERS = ("accept", "accept-encoding", "connection", "content-length", "content-type", "host", "user-agent")


@cache
def connection(base_url: str, key: Secret, silence_seconds: float) -> AsyncOpenAI:
    """Return the ``openai`` client of an endpoint, which asks once. Raises OtvalUsageError: it is not installed."""
    try:
        import httpx2
        import openai
    except ModuleNotFoundError:
        raise OtvalUsageError("openai is not installed: run ./setup.sh without --minimal") from None

    def ours(request: Request) -> Request:
        """Give it the key, and nothing that ``openai`` takes from variables such as OPENAI_ORG_ID by itself."""
        for name in set(request.headers) - set(_HEADERS):
            del request.headers[name]
        if key.reveal():
            request.headers["authorization"] = f"Bearer {key.reveal()}"
        return request

    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    client = httpx2.AsyncClient(
        auth=ours,
        timeout=httpx2.Timeout(silence_seconds, connect=CONNECT_SECONDS),
        # Whoever asks has a slot already.
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64),
        # A key must not go where an answer points to.
        follow_redirects=False,
        trust_env=not _is_loopback(base_url),
    )
    return openai.AsyncOpenAI(
        api_key="in-the-headers", admin_api_key="", base_url=base_url, max_retries=0, http_client=client
    )


def _is_loopback(base_url: str) -> bool:
    """A site's proxy cannot reach a server of this machine."""
    host = urlsplit(base_url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def run(work: Coroutine[Any, Any, T], deadline: float | None) -> T:
    """Run a coroutine to its end. Raises TimeoutError at ``deadline`` (``time.monotonic()``), and what it raises."""

    async def limited() -> T:
        left = None if deadline is None else deadline - time.monotonic()
        async with asyncio.timeout(left):
            return await work

    future = asyncio.run_coroutine_threadsafe(limited(), _loop())
    try:
        return future.result()
    except BaseException:
        # Ctrl-C comes to the thread that waits.
        future.cancel()
        raise


_starting = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    with _starting:
        return _started()


@cache
def _started() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="otval-endpoints", daemon=True).start()
    return loop
