"""A contract as a file: JSON with one line for each task, so that a diff of two shows what changed.

Its digest is the sha256 of its content as compact JSON with sorted keys, but for the digest itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from pytest_otval.contract.model import FORMAT, Contract
from pytest_otval.core import NAME, OtvalUsageError, printable
from pytest_otval.images.locks import write_whole
from pytest_otval.task.reading import NotReadableError, read_regular

MAX_BYTES = 1 << 30
_WIDTH = 150
"""Letters of a value that stands in one line."""


def sealed(contract: Contract) -> Contract:
    """Return a contract with its digest."""
    return msgspec.structs.replace(contract, digest=_digest(msgspec.to_builtins(contract)))


def _digest(values: dict[str, Any]) -> str:
    bare = {name: value for name, value in values.items() if name != "digest"}
    return hashlib.sha256(json.dumps(bare, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def write_contract(path: Path, contract: Contract) -> None:
    """Write a contract whole or not at all. Raises OtvalUsageError where it cannot be written."""
    text = "".join(_lines(msgspec.to_builtins(contract), "")) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
    except OSError as error:
        raise OtvalUsageError(f"contract {path} cannot be written: {error.strerror}") from None


def _lines(value: Any, indent: str) -> Iterator[str]:
    compact = json.dumps(value, separators=(", ", ": "))
    deeper = f"{indent} "
    if isinstance(value, dict) and (len(compact) > _WIDTH or any(isinstance(one, dict) for one in value.values())):
        parts = [f"{json.dumps(key)}: {''.join(_lines(one, deeper))}" for key, one in value.items()]
        yield f"{{\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}}}"
    elif isinstance(value, list | tuple) and len(compact) > _WIDTH:
        yield f"[\n{deeper}" + f",\n{deeper}".join("".join(_lines(one, deeper)) for one in value) + f"\n{indent}]"
    else:
        yield compact


def read_contract(path: Path) -> Contract:
    """Return the contract of a file. Raises OtvalUsageError, one line, for what is none or was changed by hand."""
    try:
        data = read_regular(path, MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        raise OtvalUsageError(f"there is no contract {path}: --otval-prepare-contract makes one") from None
    except (NotReadableError, OSError) as error:
        raise OtvalUsageError(f"contract {path} cannot be read: {error}") from None
    values = _values(path, data)
    try:
        contract = msgspec.convert(values, Contract)
    except (msgspec.ValidationError, RecursionError) as error:
        raise OtvalUsageError(f"{path} is no contract: {printable(str(error))}; {_ANEW}") from None
    _check(path, contract)
    if contract.digest != _digest(values):
        raise OtvalUsageError(f"{path} was changed after it was made: its digest does not match; {_ANEW}")
    return contract


_ANEW = "restore it, or make it anew with --otval-prepare-contract"


def _values(path: Path, data: bytes) -> dict[str, Any]:
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        words = "it is empty" if not data.strip() else f"it is no JSON, perhaps cut off: {printable(str(error))}"
        raise OtvalUsageError(f"{path} is no contract: {words}; {_ANEW}") from None
    number = values.get("otval_contract") if isinstance(values, dict) else None
    if not isinstance(values, dict) or type(number) is not int:
        raise OtvalUsageError(f"{path} is no contract: it has no `otval_contract`; {_ANEW}")
    if number != FORMAT:
        how = "update pytest-otval" if number > FORMAT else "make it anew with --otval-prepare-contract"
        raise OtvalUsageError(f"{path} has the contract format {number}, and this version reads {FORMAT}: {how}")
    return values


def _check(path: Path, contract: Contract) -> None:
    """Refuse what the types let through: names that lead elsewhere, numbers that name nothing."""
    for dataset, pin in contract.datasets.items():
        for name in (dataset, *pin.tasks):
            if name in (".", "..") or not NAME.fullmatch(name):
                raise OtvalUsageError(f"{path} is no contract: {printable(name)!r} is no name of a task; {_ANEW}")
        if ".." in Path(pin.folder).parts or "\0" in pin.folder:
            raise OtvalUsageError(f"{path} is no contract: {printable(pin.folder)!r} leads elsewhere; {_ANEW}")
        for name, task in pin.tasks.items():
            known = 0 <= task.stages < len(pin.stages)
            if not known or not all(0 <= number < len(contract.images) for number in task.images):
                raise OtvalUsageError(f"{path} is no contract: {name} names what its tables lack; {_ANEW}")
