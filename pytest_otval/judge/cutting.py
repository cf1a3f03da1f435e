"""Which parts of what is too long are shown: a rule that is the same for files and for steps of traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_otval.judge.blocks import ID_CHARS, block
from pytest_otval.judge.material import Document

LEAST = 400
"""Characters of a document that are shown, or it is left out."""
_MARK = 60
"""Characters of the words that stand for what is not shown, at most."""

Gaps = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A document before it is cut."""

    name: str
    parts: tuple[str, ...]
    """Readable; each is cut for itself, so that none of them hides another."""
    rank: int
    """Lower ones come first."""


@dataclass
class Fitted:
    """What fits."""

    documents: list[Document] = field(default_factory=list)
    """In the order of the pieces."""
    cut: list[str] = field(default_factory=list)
    """Names of those that are not shown as a whole."""
    dropped: list[str] = field(default_factory=list)
    """Names of those that are not shown at all."""
    size: int = 0
    """Characters of the documents, in blocks."""


def fit(pieces: Sequence[Piece], characters: int) -> Fitted:
    """Return as much of the pieces as may be shown with so many characters, their blocks among them.

    Ranks come one after the other; each leaves a third of what is left to those after it, if they need it. Within a
    rank the longest are cut first, all to the same length. Where that is less than LEAST, the last ones go.
    """
    fitted = Fitted()
    shown: dict[int, Document] = {}
    waiting = sum(map(_cost, pieces))
    for rank in sorted({piece.rank for piece in pieces}):
        numbers = [number for number, piece in enumerate(pieces) if piece.rank == rank]
        waiting -= sum(_cost(pieces[number]) for number in numbers)
        left = characters - fitted.size
        allowed = left - min(waiting, left // 3)
        kept = _kept([pieces[number] for number in numbers], allowed)
        around = sum(_around(pieces[number]) for number in numbers[:kept])
        most = level([_length(pieces[number]) for number in numbers[:kept]], allowed - around)
        for number in numbers[:kept]:
            shown[number] = _shortened(pieces[number], most)
            fitted.size += _around(pieces[number]) + len(shown[number].text)
    for number, piece in enumerate(pieces):
        if number not in shown:
            fitted.dropped.append(piece.name)
            continue
        fitted.documents.append(shown[number])
        if len(shown[number].text) < _length(piece):
            fitted.cut.append(piece.name)
    return fitted


def level(lengths: Sequence[int], limit: int) -> int:
    """Return the largest length to which all may be cut, so that together they have at most ``limit``."""
    left = limit
    for count, length in zip(range(len(lengths), 0, -1), sorted(lengths), strict=True):
        if length * count > left:
            return max(left // count, 0)
        left -= length
    return max(lengths, default=0)


def cut(text: str, limit: int) -> tuple[str, Gaps]:
    """Return three quarters from the beginning of a text and one from its end, and where it is cut.

    What is not shown is told where it was. With no place for that it is the beginning alone.
    """
    if len(text) <= limit:
        return text, ()
    if limit < 2 * _MARK:
        return text[:limit], ()
    end = (limit - _MARK) // 4
    start = limit - _MARK - end
    hidden = text[start : len(text) - end]
    # The blanks keep lines of an indented part indented.
    mark = f"\n  [... {len(hidden)} characters are not shown ...]\n  "
    gap = (start + len(mark), hidden.count("\n") - mark.count("\n"))
    return f"{text[:start]}{mark}{text[len(text) - end :]}", (gap,)


def _kept(pieces: Sequence[Piece], allowed: int) -> int:
    """Return how many of the pieces, from the first on, have a place if all are cut as far as may be."""
    for number, piece in enumerate(pieces):
        allowed -= _around(piece) + min(_length(piece), LEAST)
        if allowed < 0:
            return number
    return len(pieces)


def _shortened(piece: Piece, limit: int) -> Document:
    # Between two parts there is a line end.
    most = level([len(part) for part in piece.parts], limit - len(piece.parts) + 1)
    text, gaps = "", []
    for number, part in enumerate(piece.parts):
        text += "\n" if number else ""
        short, found = cut(part, most)
        gaps += [(len(text) + place, lines) for place, lines in found]
        text += short
    return Document(piece.name, text, tuple(gaps))


def _length(piece: Piece) -> int:
    return sum(map(len, piece.parts)) + len(piece.parts) - 1


def _around(piece: Piece) -> int:
    """Return the characters of a piece's block besides its text."""
    return len(block("0" * ID_CHARS, piece.name, "x")) - 1


def _cost(piece: Piece) -> int:
    return _around(piece) + _length(piece)


def some_of(lines: Sequence[str], limit: int) -> tuple[str, ...]:
    """Return the first lines that fit into a block of so many characters, and how many more there are."""
    limit -= len(block("0" * ID_CHARS, "not shown", "x"))
    kept: list[str] = []
    for number, line in enumerate(lines):
        more = f"and {len(lines) - number} more"
        # That of the next one is no longer than this.
        limit -= len(line) + 1
        if limit < len(more) + 1:
            return (*kept, more)
        kept.append(line)
    return tuple(kept)
