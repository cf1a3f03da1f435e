"""What the words of a COPY or ADD name: files of the context, here-documents, files that are fetched."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pytest_otval.images.added import is_git, is_web, web_name
from pytest_otval.images.copying import MAX_BYTES, CopyError, Source, find_sources, total_bytes
from pytest_otval.task.context import Context
from pytest_otval.task.dockerfile import Heredoc, Instruction

_DIGEST = re.compile(r"([a-z0-9]+(?:[+._-][a-z0-9]+)*):([A-Za-z0-9=_-]+)")


class NotSupportedError(Exception):
    """Docker can do it and we cannot: what it is."""


def copy_sources(
    instruction: Instruction, words: Sequence[str], checksum: str, context: Context, expanded: Callable[[str], str]
) -> tuple[Source, ...]:
    """Return what the words of a COPY or ADD name, without its destination; here-documents last, as with BuildKit.

    ``expanded`` replaces the variables in the body of a here-document. Raises CopyError, NotSupportedError.
    """
    heredocs = {f"<<{heredoc.name}": heredoc for heredoc in instruction.heredocs}
    paths: list[Source] = []
    inline: list[Source] = []
    adds = instruction.kind == "ADD"
    for word in words:
        heredoc = heredocs.get(re.sub(r"^<<-", "<<", word))
        if heredoc is not None:
            inline.append(_inline(heredoc, expanded))
        elif adds and is_git(word):
            raise NotSupportedError("ADD of a Git repository")
        elif adds and is_web(word):
            paths.append(_fetched(word, checksum, len(words)))
        elif is_web(word):
            raise CopyError("COPY takes no address: ADD does")
        else:
            paths += find_sources(context, word, unpack=adds)
    if checksum and not any(source.url for source in paths):
        raise CopyError("--checksum is for one file that is fetched")
    size = total_bytes(context, paths)
    if size > MAX_BYTES:
        raise CopyError(f"{size >> 30} GiB are more than the {MAX_BYTES >> 30} GiB that may be copied")
    return (*paths, *inline)


def _inline(heredoc: Heredoc, expanded: Callable[[str], str]) -> Source:
    body = expanded(heredoc.content) if heredoc.expand else heredoc.content
    return Source(heredoc.name, None, body.encode(errors="surrogateescape"))


def _fetched(url: str, checksum: str, count: int) -> Source:
    """Without a checksum, what an address gives could change at any time and the image's key would not tell."""
    if not checksum:
        raise NotSupportedError("ADD URL without --checksum")
    if count > 1:
        raise CopyError("--checksum is for one file that is fetched")
    found = _DIGEST.fullmatch(checksum)
    if found is None:
        raise CopyError(f"--checksum={checksum[:200]}: no digest such as sha256:...")
    if found[1] in ("sha384", "sha512"):
        raise NotSupportedError(f"ADD --checksum={found[1]}")
    if found[1] != "sha256" or not re.fullmatch(r"[0-9a-f]{64}", found[2]):
        raise CopyError(f"--checksum={checksum[:200]}: no sha256 of 64 hex digits")
    try:
        return Source(web_name(url), None, url=url, checksum=found[2])
    except ValueError as error:
        raise CopyError(str(error)) from None
