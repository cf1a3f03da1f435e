"""HTTP as registries need it: bounded answers, and another try where a fault may pass.

What is tried again: the statuses 429, 500, 502, 503 and 504, connections that break, and bodies that end too early. A
host that cannot be reached at all is not: a machine without a network would wait in vain for each image.
"""

from __future__ import annotations

import hashlib
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import closing
from email.message import Message
from http.client import HTTPException, HTTPResponse, InvalidURL
from pathlib import Path
from typing import TypeVar, cast

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from pytest_otval.core import printable
from pytest_otval.images.oci import MAX_JSON, NoAnswerError, RefusedError
from pytest_otval.waiting import MAX_WAIT, as_asked

TRIES = 5

_BLOB_SECONDS = 60.0
_CHUNK = 1 << 20
_PASSING = (429, 500, 502, 503, 504)
_T = TypeVar("_T")


class StatusError(Exception):
    """The host answered with a status that is no success."""

    def __init__(self, url: str, status: int, words: str, headers: Message) -> None:
        super().__init__(f"{_host(url)} answers {status} {printable(words[:80])}".rstrip())
        self.status = status
        self.headers = headers


class _BrokenError(Exception):
    """The answer broke off."""


class Transport:
    """Asks by HTTP."""

    def __init__(self, seconds: float, sleep: Callable[[float], None] = time.sleep) -> None:
        """``seconds`` is how long a host may be silent; ``sleep`` waits between two tries."""
        self._seconds = seconds
        self._sleep = sleep

    def get(self, url: str, headers: Mapping[str, str], authorization: str = "") -> bytes:
        """Return a body of at most ``MAX_JSON`` bytes. Raises StatusError, NoAnswerError, RefusedError."""

        def attempt() -> bytes:
            with self._open(url, "GET", headers, authorization, self._seconds) as answer:
                body = _read(answer, MAX_JSON + 1)
                if len(body) > MAX_JSON:
                    raise RefusedError(f"{_host(url)} answers with more than {MAX_JSON >> 20} MiB")
                return body

        return self._again(url, attempt)

    def head(self, url: str, headers: Mapping[str, str], authorization: str = "") -> Message:
        """Return the headers. Raises as ``get`` does."""

        def attempt() -> Message:
            with self._open(url, "HEAD", headers, authorization, self._seconds) as answer:
                return answer.headers

        return self._again(url, attempt)

    def save(self, url: str, target: Path, digest: str, authorization: str = "") -> None:
        """Write a body to a file. Raises as ``get`` does, RefusedError for another digest, OSError."""

        def attempt() -> None:
            found = hashlib.sha256()
            seconds = max(self._seconds, _BLOB_SECONDS)
            with self._open(url, "GET", {}, authorization, seconds) as answer, target.open("wb") as file:
                while chunk := _read(answer, _CHUNK):
                    found.update(chunk)
                    file.write(chunk)
            if f"sha256:{found.hexdigest()}" != digest:
                raise RefusedError(f"{_host(url)} gives {digest[:19]} with other bytes")

        self._again(url, attempt)

    def _again(self, url: str, attempt: Callable[[], _T]) -> _T:
        retrying = Retrying(
            stop=stop_after_attempt(TRIES),
            wait=_pause,
            retry=retry_if_exception_type(_BrokenError) | _passing,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return retrying(attempt)
        except _BrokenError as error:
            raise NoAnswerError(f"{_host(url)}: {error}") from None

    def _open(
        self, url: str, method: str, headers: Mapping[str, str], authorization: str, seconds: float
    ) -> closing[HTTPResponse]:
        request = urllib.request.Request(url, headers=dict(headers), method=method)
        if authorization:
            # Blobs are redirected to storage that signs its addresses and refuses a second authorisation.
            request.add_unredirected_header("Authorization", authorization)
        try:
            return closing(cast("HTTPResponse", urllib.request.urlopen(request, timeout=seconds)))
        except urllib.error.HTTPError as error:
            with error:
                raise StatusError(url, error.code, error.reason or "", error.headers) from None
        except InvalidURL:
            raise RefusedError(f"{_host(url)[:100]!r} is no address") from None
        except ConnectionRefusedError as error:
            raise NoAnswerError(f"{_host(url)}: {error}") from None
        except (ConnectionError, HTTPException) as error:
            raise _BrokenError(_words(error)) from None
        except urllib.error.URLError as error:
            if isinstance(error.reason, ConnectionError) and not isinstance(error.reason, ConnectionRefusedError):
                raise _BrokenError(_words(error.reason)) from None
            raise NoAnswerError(f"{_host(url)}: {error.reason}") from None
        except OSError as error:
            raise NoAnswerError(f"{_host(url)}: {_words(error)}") from None
        except ValueError as error:
            raise RefusedError(f"{_host(url)}: {_words(error)}") from None


def _read(answer: HTTPResponse, size: int) -> bytes:
    """Read up to ``size`` bytes; fewer only at the end."""
    try:
        data = answer.read(size)
    except (OSError, HTTPException) as error:
        raise _BrokenError(_words(error)) from None
    if len(data) < size and answer.length:
        raise _BrokenError(f"the answer ends {answer.length} bytes too early")
    return data


def _passing(state: RetryCallState) -> bool:
    error = state.outcome.exception() if state.outcome else None
    return isinstance(error, StatusError) and error.status in _PASSING


def _headers_of(error: BaseException) -> Message | None:
    return error.headers if isinstance(error, StatusError) else None


_pause = as_asked(_headers_of, wait_exponential(0.5, MAX_WAIT) + wait_random(0, 0.5))


def _host(url: str) -> str:
    """Return what may be shown of an address: the rest may hold signatures."""
    return urllib.parse.urlsplit(url).netloc.rpartition("@")[2]


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
