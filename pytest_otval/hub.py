"""A repository of the Hugging Face hub: what files it has, and bringing files from it and to it.

``huggingface_hub`` keeps no part of a file when a command is killed, so files are read by ranges into a part of ours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from pytest_otval.core import Conclusion, OtvalUsageError, printable

if TYPE_CHECKING:
    from huggingface_hub import HfApi, HfFileSystem, HfFileSystemFile

T = TypeVar("T")
Kind = Literal["dataset", "model"]

BLOCK_BYTES = 8 * 1024 * 1024
"""How much of a file is asked for at a time, and lost when a download is killed."""
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_QUIET = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_VERBOSITY": "error",
    # With it, uploads would go to other servers than the hub, by a protocol that sites' proxies do not know.
    "HF_HUB_DISABLE_XET": "1",
}
_TRIES = 3
_UNAUTHORIZED, _FORBIDDEN, _TOO_MANY = 401, 403, 429


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository."""

    bytes: int
    sha256: str = ""
    """Of what is kept as large file; of others the hub does not tell it."""
    blob: str = field(default="", compare=False)
    """Of others: git's id of the content."""


def _require_online() -> None:
    """Raise OtvalUsageError where this process must not ask the hub: HF_HUB_OFFLINE says so."""
    for name in _OFFLINE:
        if os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE"):
            raise OtvalUsageError(f"{name} is set, so the hub is not asked: unset it where there is a network")


class Hub:
    """One repository, at a revision, or its newest state when it was opened.

    ``$HF_ENDPOINT`` and ``$HF_TOKEN`` apply.
    """

    def __init__(
        self, repository: str, revision: str | None = None, private: bool = False, kind: Kind = "dataset"
    ) -> None:
        """``private``: the repository is made where there is none, and is refused where everybody sees it.

        Raise OtvalUsageError: offline, huggingface_hub is missing, no such repository, or it may not be seen.

        Raise Conclusion ``network-unreachable``.
        """
        _require_online()
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        try:
            import huggingface_hub
        except ModuleNotFoundError:
            words = "huggingface_hub is not installed: run ./setup.sh without --minimal"
            raise OtvalUsageError(words) from None
        self.repository = repository
        self._kind: Kind = kind
        # Never the token that `hf auth login` left somewhere: what is not named is not used.
        self._token: str | bool = os.environ.get("HF_TOKEN") or False
        self._endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
        if not re.match(r"https?://[^/]", self._endpoint):
            words = "HF_ENDPOINT is no address of a hub: write it as https://HOST"
            raise OtvalUsageError(words)
        self._api: HfApi = huggingface_hub.HfApi(endpoint=self._endpoint, token=self._token)
        self._system: HfFileSystem = huggingface_hub.HfFileSystem(
            endpoint=self._endpoint, token=self._token, skip_instance_cache=True
        )
        if private:
            self._asked(lambda: self._api.create_repo(repository, private=True, repo_type=kind, exist_ok=True))
        info = self._asked(lambda: self._api.repo_info(repository, revision=revision, repo_type=kind))
        if private and not info.private:
            raise OtvalUsageError(f"{printable(repository)} is there and public: nothing was sent; name another one")
        self.revision = str(info.sha)

    def files(self, folder: str) -> dict[str, HubFile]:
        """Return the files right in a folder ("": the uppermost), by name; empty where there is no such folder.

        Raises as opening does.
        """
        from huggingface_hub import RepoFile
        from huggingface_hub.errors import EntryNotFoundError

        def listed() -> dict[str, HubFile]:
            try:
                found = list(
                    self._api.list_repo_tree(self.repository, folder, revision=self.revision, repo_type=self._kind)
                )
            except EntryNotFoundError:
                return {}
            files = [one for one in found if isinstance(one, RepoFile)]
            return {
                one.path.removeprefix(f"{folder}/"): HubFile(
                    one.size, one.lfs.sha256 if one.lfs else "", "" if one.lfs else one.blob_id
                )
                for one in files
            }

        return self._asked(listed)

    def read(self, path: str, most_bytes: int) -> bytes:
        """Return the content of a small file. Raises as opening does, OtvalUsageError above ``most_bytes``."""
        data = b"".join(self._blocks(path, 0, most_bytes + 1))
        if len(data) > most_bytes:
            raise OtvalUsageError(f"{self.repository}: {printable(path)} has more than {most_bytes} bytes")
        return data

    def fetch(self, path: str, size: int, part: Path) -> None:
        """Bring the first ``size`` bytes of a file into ``part``, going on where an earlier try of it ended.

        Whether they are the right ones is the caller's to find out. Raises as opening does, OSError.
        """
        there = part.stat().st_size if part.exists() else 0
        if there > size:
            part.unlink()
        elif part.exists() and there == size:
            # It may have been killed when it was about to get its name, and nobody may write to it any more.
            return
        with part.open("ab") as file:
            for block in self._blocks(path, file.tell(), size):
                file.write(block)
                file.flush()

    def _blocks(self, path: str, start: int, end: int) -> Iterator[bytes]:
        from huggingface_hub.errors import RepositoryNotFoundError

        above = "datasets/" if self._kind == "dataset" else ""
        whole = f"{above}{self.repository}@{self.revision}/{path}"

        def opening() -> HfFileSystemFile:
            try:
                opened: HfFileSystemFile = self._system.open(whole, "rb", block_size=BLOCK_BYTES, cache_type="none")
                return opened
            except FileNotFoundError as error:
                # A repository that is gone is told of in this way, too.
                if isinstance(error.__cause__, RepositoryNotFoundError):
                    raise error.__cause__ from None
                words = f"{self._endpoint} has no file {printable(path)} in {self.repository}, or no longer"
                raise OtvalUsageError(f"{words}: see what is there, and run this again") from None

        source = self._asked(opening)
        with source:
            source.seek(min(start, source.size))
            while source.tell() < min(end, source.size):
                wanted = min(BLOCK_BYTES, end - source.tell())
                block = self._asked(partial(source.read, wanted))
                if not block:
                    return
                yield block

    def upload(self, files: Mapping[str, Path], message: str) -> None:
        """Put files at their paths, all in one commit or none; content that the hub has is not sent again.

        Raises as opening does; OtvalUsageError where the token may not write.
        """
        from huggingface_hub import CommitOperationAdd

        def commit() -> None:
            operations = [CommitOperationAdd(path, str(file)) for path, file in files.items()]
            self._api.create_commit(self.repository, operations, commit_message=message, repo_type=self._kind)

        self._asked(commit)

    def _asked(self, ask: Callable[[], T]) -> T:
        """Ask the hub, several times where another try may help."""
        from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

        from pytest_otval.waiting import as_asked

        tries = Retrying(
            retry=retry_if_exception(_may_pass),
            stop=stop_after_attempt(_TRIES),
            wait=as_asked(_headers_of, wait_exponential(max=8)),
            reraise=True,
        )
        with self._told():
            return tries(ask)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say in one line what the hub answered. No text of its libraries: addresses in it may hold keys."""
        from huggingface_hub import errors

        name = printable(self.repository)
        try:
            yield
        except errors.HFValidationError:
            raise OtvalUsageError(f"{name} is no name of a repository: write ORGANISATION/NAME") from None
        except errors.GatedRepoError:
            words = "is gated: ask for access on its page, and set HF_TOKEN to a token of yours"
            raise OtvalUsageError(f"{self._endpoint} says that {name} {words}") from None
        except errors.RevisionNotFoundError:
            raise OtvalUsageError(
                f"{self._endpoint} has no such revision of {name}: see its page for those it has"
            ) from None
        except errors.RepositoryNotFoundError:
            words = (
                f"{self._endpoint} shows no {self._kind} repository {name}: make it there, or set HF_TOKEN to see it"
            )
            raise OtvalUsageError(words) from None
        except Exception as error:
            status, known = _status(error), _is_of_the_hub(error)
            if status in (_UNAUTHORIZED, _FORBIDDEN):
                words = f"{self._endpoint} refuses this for {name} (HTTP {status}): set HF_TOKEN to a token that may"
                raise OtvalUsageError(words) from None
            if not known:
                raise
            what = f"HTTP {status}" if status else type(_cause(error)).__name__
            words = f"{self._endpoint} did not give or take what was asked of {name} ({what}): try again later"
            raise Conclusion("network-unreachable", words) from None


def _cause(error: BaseException) -> BaseException:
    """Return the error of the transfer that another one only wraps."""
    while isinstance(error, RuntimeError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def _is_of_the_hub(error: BaseException) -> bool:
    from huggingface_hub.errors import HfHubHTTPError

    # Its last base but OSError is the error of whatever HTTP library it uses, and of failed connections.
    return isinstance(_cause(error), HfHubHTTPError.__bases__[0])


def _headers_of(error: BaseException) -> Mapping[str, str] | None:
    response = getattr(_cause(error), "response", None)
    return getattr(response, "headers", None)


def _status(error: BaseException) -> int:
    response = getattr(_cause(error), "response", None)
    return int(getattr(response, "status_code", 0) or 0)


def _may_pass(error: BaseException) -> bool:
    status = _status(error)
    return _is_of_the_hub(error) and (status == 0 or status == _TOO_MANY or status >= 500)
