"""``runtime publish`` and ``runtime download``: the cache and the folder ``runtimes/`` of a dataset repository."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path

from pytest_otval.cluster.runtime_cache import find, line_of, named_below, opened_cache, warn_of
from pytest_otval.core import OtvalUsageError, printable
from pytest_otval.hub import Hub, HubFile
from pytest_otval.runtimes.foreign import fault_of
from pytest_otval.runtimes.record import CHECKSUM, Runtime, parse_record, read_record, record_path, records, short
from pytest_otval.runtimes.store import Runtimes

FOLDER = "runtimes"
"""Of the repository."""
_MAX_RECORD_BYTES = 64 << 20


def publish(arguments: argparse.Namespace) -> int:
    """Send runtimes that the hub lacks, each in a commit of its own; return 1 where one is not right."""
    cache = opened_cache()
    named = [one for prefix in arguments.runtimes for one in find(cache, prefix)]
    wanted = {one.checksum: one for one in named or records(cache.cache)}
    if not wanted:
        raise OtvalUsageError(f"{cache.cache} has no runtime to publish: see `runtime build`")
    hub = Hub(arguments.repository)
    there = hub.files(FOLDER)
    return max(_sent(hub, there, cache, runtime) for runtime in wanted.values())


def _sent(hub: Hub, there: Mapping[str, HubFile], cache: Runtimes, runtime: Runtime) -> int:
    files = (cache.file(runtime), record_path(cache.cache, runtime.checksum))
    known = there.get(files[0].name)
    if known is not None and known.sha256 in ("", runtime.checksum) and files[1].name in there:
        print(f"{line_of(runtime)}  is there", flush=True)
        return 0
    fault = cache.fault(runtime)
    if fault:
        print(f"error: {runtime.id}  {short(runtime.checksum)}: {fault}: not published", file=sys.stderr)
        return 1
    hub.upload({f"{FOLDER}/{file.name}": file for file in files}, f"Runtime {runtime.id}")
    print(f"{line_of(runtime)}  published", flush=True)
    return 0


def download(arguments: argparse.Namespace) -> int:
    """Bring runtimes into the cache; return 1 where one is missing or is not right."""
    cache = opened_cache()
    named = _named(arguments.tasks) if arguments.tasks else set()
    hub = Hub(arguments.repository)
    there = hub.files(FOLDER)
    whole = {path.removesuffix(".json") for path in there if path.endswith(".json")}
    found = sorted(one for one in whole if CHECKSUM.fullmatch(one) and f"{one}.sqfs" in there)
    if not found:
        raise OtvalUsageError(f"{hub.repository} has no whole runtime in {FOLDER}/: see `runtime publish`")
    faults = [f"{hub.repository} has no {short(one)}, which a task names" for one in sorted(named - set(found))]
    for runtime in _wanted(hub, found, named, arguments):
        fault = (
            runtime if isinstance(runtime, str) else _brought(hub, cache, runtime, there[f"{runtime.checksum}.sqfs"])
        )
        faults += filter(None, [fault])
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    return 1 if faults else 0


def _named(paths: Iterable[Path]) -> set[str]:
    named = named_below(paths)
    if not named.tasks:
        raise OtvalUsageError("there is no task below the folders given: name the folders of tasks or datasets")
    warn_of(named)
    return named.checksums


def _wanted(hub: Hub, found: Iterable[str], named: Set[str], arguments: argparse.Namespace) -> Iterator[Runtime | str]:
    """Yield the runtimes to bring, and a line for each manifest that is none. Raises OtvalUsageError: no such id."""
    unseen = set(arguments.runtimes)
    everything = not (arguments.tasks or arguments.runtimes)
    for checksum in found:
        # Ids stand in the manifests alone.
        if not (everything or checksum in named or arguments.runtimes):
            continue
        runtime = parse_record(hub.read(f"{FOLDER}/{checksum}.json", _MAX_RECORD_BYTES), checksum)
        if runtime is None:
            yield f"{hub.repository}: {FOLDER}/{checksum}.json is no manifest of a runtime: not used"
            continue
        asked = {one for one in arguments.runtimes if checksum.startswith(one) or runtime.id.startswith(one)}
        unseen -= asked
        if everything or checksum in named or asked:
            yield runtime
    for prefix in sorted(unseen):
        yield f"{hub.repository} has no runtime {printable(prefix)}"


def _brought(hub: Hub, cache: Runtimes, runtime: Runtime, file: HubFile) -> str:
    """Bring one runtime and return what is wrong with what came, in one line; then nothing of it is kept."""
    name = f"{runtime.id}  {short(runtime.checksum)}"
    try:
        with cache.making(runtime.checksum):
            known = read_record(cache.cache, runtime.checksum)
            if known is not None and not cache.fault(known):
                print(f"{line_of(runtime)}  is there", flush=True)
                return ""
            if file.bytes != runtime.bytes:
                return f"{name}: the squashfs has {file.bytes} bytes in place of {runtime.bytes}: not downloaded"
            part = cache.part(runtime.checksum)
            if known is None and not cache.fault(runtime):
                # Killed before its manifest was written: it need not come again.
                cache.file(runtime).replace(part)
            hub.fetch(f"{FOLDER}/{runtime.checksum}.sqfs", runtime.bytes, part)
            fault = fault_of(part, runtime)
            if fault:
                part.unlink()
                return f"{name}: {fault}: removed"
            cache.publish(part, runtime)
    except OSError as error:
        raise OtvalUsageError(f"{cache.cache} cannot be written: {error.strerror or error}") from None
    print(f"{line_of(runtime)}  downloaded", flush=True)
    return ""
