"""A client of image registries: the digest behind a tag, an image's configuration, and its blobs.

The API is https://distribution.github.io/distribution/spec/api/ with its token scheme.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import TypeVar

from pytest_otval.core import printable
from pytest_otval.images.credentials import Credentials
from pytest_otval.images.model import ImageConfig
from pytest_otval.images.oci import (
    MANIFESTS,
    NoAnswerError,
    NotThereError,
    RefusedError,
    find_image,
    write_layout,
)
from pytest_otval.images.reference import HUB, Mirrors, Reference
from pytest_otval.images.transport import StatusError, Transport
from pytest_otval.profile import Profile

_SECONDS = 5.0
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_FAULTS = (NoAnswerError, NotThereError, RefusedError)
_ACCEPT = {"Accept": ", ".join(MANIFESTS)}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RegistryImage:
    """An image as its registry has it."""

    digest: str
    """Of what the tag names: ``sha256:...``."""
    config: ImageConfig


class Registry:
    """A client of all registries; keeps what they let it in with, and which of them are no use now."""

    def __init__(
        self,
        plain_http: frozenset[str] = frozenset(),
        credentials: Credentials | None = None,
        mirrors: Mirrors | None = None,
        seconds: float = _SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Hosts of ``plain_http`` are spoken to without TLS; ``seconds`` is how long a registry may be silent."""
        self._plain_http = plain_http
        self._credentials = credentials or Credentials()
        self._mirrors = mirrors or Mirrors({})
        self._transport = Transport(seconds, sleep)
        self._admitted: dict[str, str] = {}
        """``Authorization`` by repository."""
        self._trouble: dict[str, tuple[type[Exception], str]] = {}
        """Hosts that were of no use however often they were asked."""

    @classmethod
    def of(cls, profile: Profile) -> Registry:
        """Return the client that a cluster profile asks for."""
        section = profile.registries
        return cls(frozenset(section.plain_http), Credentials(section.login), Mirrors(profile.mirrors))

    def resolve(self, reference: Reference) -> RegistryImage:
        """Return digest and configuration of an image for this machine.

        The site's mirror is asked first; where it cannot tell, the image's own registry is. A host that is silent, or
        goes on telling to wait, is not asked again. Raises NoAnswerError, NotThereError or RefusedError.
        """
        return self._anywhere(reference, self._resolve)

    def download(self, reference: Reference, folder: Path) -> None:
        """Write the image of a digest as an OCI layout, each blob as its digest says.

        Raises as ``resolve`` does, and OSError where it cannot be written.
        """

        def attempt(place: Reference) -> None:
            content = _Repository(self, place)
            write_layout(find_image(content, place.digest), content, folder)

        self._anywhere(reference, attempt)

    def _anywhere(self, reference: Reference, ask: Callable[[Reference], _T]) -> _T:
        *mirrors, own = self._mirrors.places(reference)
        said = ""
        for place in mirrors:
            try:
                return ask(place)
            except _FAULTS as error:
                said = f"{error}; "
        try:
            return ask(own)
        except _FAULTS as error:
            raise type(error)(f"{said}{error}") from None

    def _resolve(self, place: Reference) -> RegistryImage:
        if place.host in self._trouble:
            kind, words = self._trouble[place.host]
            raise kind(words)
        try:
            digest = place.digest or self._digest(place)
            return RegistryImage(digest, find_image(_Repository(self, place), digest).config)
        except (_BusyError, NoAnswerError) as error:
            self._trouble[place.host] = (type(error), str(error))
            raise

    def _digest(self, place: Reference) -> str:
        """HEAD costs nothing of Docker Hub's rate limit."""
        url = self._url(place, f"manifests/{place.tag}")

        def ask(authorization: str) -> Message:
            return self._transport.head(url, _ACCEPT, authorization)

        digest = self.admitted(place, ask).get("Docker-Content-Digest", "")
        if not _DIGEST.fullmatch(digest):
            raise RefusedError(f"{place}: {place.host} tells no digest")
        return digest

    def get(self, place: Reference, what: str, digest: str) -> bytes:
        """Return a manifest or a small blob that has a digest. Raises NoAnswerError, NotThereError, RefusedError."""
        url = self._url(place, f"{what}/{digest}")
        body = self.admitted(place, lambda authorization: self._transport.get(url, _ACCEPT, authorization))
        if f"sha256:{hashlib.sha256(body).hexdigest()}" != digest:
            raise RefusedError(f"{place}: {place.host} gives {digest[:19]} with other bytes")
        return body

    def save(self, place: Reference, digest: str, target: Path) -> None:
        """Write a blob of any size to a file. Raises as ``get`` does, and OSError."""
        url = self._url(place, f"blobs/{digest}")
        self.admitted(place, lambda authorization: self._transport.save(url, target, digest, authorization))

    def _url(self, place: Reference, what: str) -> str:
        host = f"registry-1.{HUB}" if place.host == HUB else place.host
        return f"{self._scheme(place)}://{host}/v2/{place.path}/{what}"

    def _scheme(self, place: Reference) -> str:
        return "http" if place.host in self._plain_http else "https"

    def admitted(self, place: Reference, ask: Callable[[str], _T]) -> _T:
        """Ask with the ``Authorization`` that a repository let us in with; a new one where it wants one."""
        try:
            return ask(self._admitted.get(place.repository, ""))
        except StatusError as error:
            if error.status != 401:
                raise _meaning(place, error) from None
            challenge = error.headers.get("WWW-Authenticate", "")
        # The one that was kept may be too old by now.
        given = self._admitted[place.repository] = self._admission(place, challenge)
        try:
            return ask(given)
        except StatusError as error:
            raise _meaning(place, error) from None

    def _admission(self, place: Reference, challenge: str) -> str:
        """Return what answers ``WWW-Authenticate``: a token, which may be anonymous, or the log-in itself."""
        scheme = challenge.partition(" ")[0].lower()
        login = self._credentials.login(place)
        if scheme == "bearer":
            return f"Bearer {self._token(place, challenge, login.header if login else '')}"
        if scheme == "basic" and login is not None:
            return login.header
        if scheme == "basic":
            raise RefusedError(_log_in(place))
        raise RefusedError(f"{place}: {place.host} asks for a log-in of an unknown kind")

    def _token(self, place: Reference, challenge: str, authorization: str) -> str:
        fields = dict(_CHALLENGE.findall(challenge))
        realm = fields.pop("realm", "")
        if not realm.startswith(("https://", f"{self._scheme(place)}://")):
            raise RefusedError(f"{place}: {place.host} sends for a token to {printable(realm[:100])}")
        fields.setdefault("scope", f"repository:{place.path}:pull")
        try:
            body = self._transport.get(f"{realm}?{urllib.parse.urlencode(fields)}", {}, authorization)
            answer = json.loads(body)
            token = str(answer.get("token") or answer["access_token"])
        except StatusError as error:
            raise _meaning(place, error) from None
        except (ValueError, KeyError, AttributeError, RecursionError):
            raise RefusedError(f"{place}: {place.host} gives no token") from None
        if not token.isascii() or not token.isprintable():
            raise RefusedError(f"{place}: {place.host} gives no token")
        return token


@dataclass(frozen=True, slots=True)
class _Repository:
    """Content of a repository; see ``oci.Content``."""

    registry: Registry
    place: Reference

    def manifest(self, digest: str) -> bytes:
        return self.registry.get(self.place, "manifests", digest)

    def blob(self, digest: str) -> bytes:
        return self.registry.get(self.place, "blobs", digest)

    def copy(self, digest: str, target: Path) -> None:
        self.registry.save(self.place, digest, target)


class _BusyError(RefusedError):
    """The registry goes on telling to wait."""


def _meaning(place: Reference, error: StatusError) -> Exception:
    if error.status == 404:
        return NotThereError(f"{place.host} has no {place}")
    if error.status == 429:
        return _BusyError(f"{place.host} allows no more pulls for now: {_OWN_RATE}")
    if error.status >= 500:
        return NoAnswerError(f"{place.host}: HTTP status {error.status}")
    if error.status in (401, 403):
        return RefusedError(_log_in(place))
    return RefusedError(f"{place}: {error}")


_OWN_RATE = "wait, log in, or name a mirror in the cluster profile"


def _log_in(place: Reference) -> str:
    return f"{place}: {place.host} wants a log-in with access: apptainer registry login docker://{place.host}"
