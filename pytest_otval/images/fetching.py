"""ADD of an address: one file, whose digest the Dockerfile gives, fetched by us before it goes into the container.

What is fetched is never looked at, only its bytes counted and hashed. Addresses that lead to this machine itself are
refused: a container has no way to them, and what asks on a task's behalf must not be one.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import closing
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, Any, cast

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from pytest_otval.core import Conclusion, Network, printable
from pytest_otval.images.copying import MAX_BYTES, CopyError, Source

_TRIES = 3
_WAIT = wait_exponential(0.5, 4)
_SILENT_SECONDS = 30.0
_BLOCK = 1 << 20
_PASSING = (429, 500, 502, 503, 504)


class _TimeIsUpError(Exception):
    """The build's time is over."""


class _NoAnswerError(Exception):
    """What may be otherwise next time: one line."""


def fetch(source: Source, target: Path, where: str, deadline: float, network: Network) -> None:
    """Write what a source's address gives to ``target``; its time of modification is the one that the server tells.

    ``deadline`` is in seconds of ``time.monotonic``. Raises CopyError where the address gives no such file,
    Conclusion ``network-unreachable`` where it does not answer, and ``build-timeout``.
    """
    host = _host(source.url)
    if network == "none":
        raise Conclusion("network-unreachable", f"{where}: {host} is not asked, this run is offline")
    retrying = Retrying(
        stop=stop_after_attempt(_TRIES), wait=_WAIT, retry=retry_if_exception_type(_NoAnswerError), reraise=True
    )
    try:
        retrying(_fetch, source, target, deadline)
    except _NoAnswerError as error:
        raise Conclusion("network-unreachable", f"{where}: {host}: {error}") from None
    except _TimeIsUpError:
        raise Conclusion("build-timeout", f"{where}: {host}: not fetched within the build's time") from None


def _host(url: str) -> str:
    try:
        parts = urllib.parse.urlsplit(url)
        # Where a port is no number, asking for it tells.
        return printable(f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname))
    except ValueError as error:
        raise CopyError(f"no address: {printable(str(error))}") from None


def _fetch(source: Source, target: Path, deadline: float) -> None:
    opener = urllib.request.build_opener(_Redirects)
    try:
        _require_elsewhere(source.url)
        with closing(_opened(opener, source.url, deadline)) as answer, target.open("wb") as file:
            _save(answer, file, source.checksum, deadline)
        _set_time(target, answer.headers.get("Last-Modified", ""))
    except urllib.error.HTTPError as error:
        with error:
            if error.code in _PASSING:
                raise _NoAnswerError(f"{error.code} {printable(error.reason or '')}") from None
            raise CopyError(f"the address answers {error.code} {printable(error.reason or '')}") from None
    except (urllib.error.URLError, HTTPException, ConnectionError, TimeoutError) as error:
        _require_time(deadline)
        raise _NoAnswerError(printable(str(getattr(error, "reason", error)) or type(error).__name__)) from None
    except ValueError as error:
        raise CopyError(printable(str(error))) from None


def _opened(opener: urllib.request.OpenerDirector, url: str, deadline: float) -> HTTPResponse:
    left = _require_time(deadline)
    return cast("HTTPResponse", opener.open(url, timeout=min(left, _SILENT_SECONDS)))


def _save(answer: HTTPResponse, file: IO[bytes], checksum: str, deadline: float) -> None:
    found, size = hashlib.sha256(), 0
    # Not ``read``, which waits for a whole block however slow the bytes come.
    while block := answer.read1(_BLOCK):
        _require_time(deadline)
        size += len(block)
        if size > MAX_BYTES:
            raise CopyError(f"the file has more than {MAX_BYTES >> 30} GiB")
        found.update(block)
        file.write(block)
    if answer.length:
        raise _NoAnswerError(f"the answer ends {answer.length} bytes too early")
    if found.hexdigest() != checksum:
        raise CopyError(f"the file's sha256 is {found.hexdigest()}, not {checksum}")


def _require_time(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise _TimeIsUpError
    return left


def _set_time(target: Path, words: str) -> None:
    try:
        seconds = max(0.0, parsedate_to_datetime(words).timestamp())
    except (ValueError, TypeError, OverflowError):
        seconds = 0.0
    os.utime(target, (seconds, seconds))


class _Redirects(urllib.request.HTTPRedirectHandler):
    """The web only, and not to this machine."""

    def redirect_request(self, *words: Any) -> urllib.request.Request | None:
        """See the class above; the last word is the new address."""
        _require_elsewhere(words[-1])
        return super().redirect_request(*words)


def _require_elsewhere(url: str) -> None:
    """Raise CopyError for another scheme, a password, or an address of this machine or of its link."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CopyError(f"no http or https address: {printable(url[:200])}")
    if parts.username is not None:
        raise CopyError("ADD takes no address with a user")
    try:
        found = socket.getaddrinfo(parts.hostname, None, type=socket.SOCK_STREAM)
    except OSError:
        # Perhaps a proxy knows the name.
        return
    if any(_is_own(str(address[0])) for *_, address in found):
        raise CopyError(f"{printable(parts.hostname)} is this machine")


def _is_own(address: str) -> bool:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    return parsed.is_loopback or parsed.is_link_local or parsed.is_unspecified or parsed.is_multicast
