"""``image list``, ``show``, ``verify``, ``export``, ``import`` and ``diff``: what needs the store's files alone."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pytest_otval.cluster.shown import size_text
from pytest_otval.core import Conclusion, OtvalUsageError, printable
from pytest_otval.images.inventory import Use, Verifier, is_locked, keys_of, remove_image, use_of
from pytest_otval.images.record import Record, find_record, image_files, record_path, records
from pytest_otval.profile import QuotaSection, load_profile
from pytest_otval.workspace import Workspace

NEARLY_FULL = 0.8
"""Of a quota: from then on a command warns."""


def quota_lines(use: Use, quota: QuotaSection) -> list[tuple[bool, str]]:
    """Return for each quota of the profile whether it is nearly used up, and a line that says how far."""
    limits = [("files", use.files, quota.files), ("GB", use.bytes / 1e9, quota.gb)]
    return [
        (used > NEARLY_FULL * most, f"{used:.4g} of {most:g} {unit} of [quota], {100 * used / most:.0f} %")
        for unit, used, most in limits
        if most is not None
    ]


def list_images(arguments: argparse.Namespace) -> int:
    """List what is in the store, and sums."""
    store, quota = Workspace.from_environment().images, load_profile(arguments.cluster).quota
    found, use = list(records(store)), use_of(store)
    if arguments.json:
        images = [{**_facts(record), "packages": _package_counts(record)} for record in found]
        print(json.dumps({"images": images, **asdict(use), "quota": quota.model_dump()}, indent=1))
        return 0
    print(f"{'key':12}  {'size':>9}  below  packages  made of")
    for record in found:
        count = sum(_package_counts(record).values())
        base = printable(record.base)
        print(f"{record.key[:12]}  {size_text(record.bytes):>9}  {len(record.below):>5}  {count:>8}  {base}")
    total = size_text(sum(record.bytes for record in found))
    print(f"{len(found)} images, {total}; the store has {use.files} files, {size_text(use.bytes)}")
    for is_much, line in quota_lines(use, quota):
        print(f"warning: {line}: `image gc` removes what nothing needs" if is_much else line)
    return 0


def show(arguments: argparse.Namespace) -> int:
    """Show what the store knows of an image."""
    record = find_record(Workspace.from_environment().images, arguments.key)
    if arguments.json:
        print(json.dumps(_facts(record) | ({"log": record.log} if arguments.log else {}), indent=1))
    elif arguments.log:
        print("\n".join(printable(line) for line in record.log.splitlines()))
    else:
        print("\n".join(f"{name:12}  {printable(text)}" for name, text in _record_lines(record)))
    return 0


def _facts(record: Record) -> dict[str, Any]:
    facts = {**asdict(record), "config": record.config.as_dict()}
    del facts["log"]
    return facts


def _package_counts(record: Record) -> dict[str, int]:
    return {manager: len(versions) for manager, versions in record.packages.items()}


def _record_lines(record: Record) -> Iterator[tuple[str, str]]:
    yield "key", record.key
    yield "content", record.content
    yield "made of", record.base
    yield "size", f"{record.bytes} bytes ({size_text(record.bytes)})"
    yield from (("below", key) for key in record.below)
    yield "owners", "all root's" if record.all_root else "as the steps set them"
    yield "built in", f"{record.seconds:g} s"
    for name, value in record.config.as_dict().items():
        if isinstance(value, dict):
            yield from ((name, f"{key}={text}") for key, text in sorted(value.items()))
        elif value:
            yield name, json.dumps(value) if isinstance(value, list) else str(value)
    for manager, versions in sorted(record.packages.items()):
        yield from ((manager, f"{name} {version}") for name, version in sorted(versions.items()))


def verify(arguments: argparse.Namespace) -> int:
    """Read images and say which are not what their records say; return 1 if there are any."""
    store = Workspace.from_environment().images
    keys = [find_key(store, key) for key in arguments.keys] or keys_of(store)
    verifier, faults = Verifier(store), 0
    for key in keys:
        if is_locked(store, key):
            continue
        fault = verifier.fault(key)
        if fault:
            faults += 1
            print(f"{key[:12]}: {printable(fault)}{_removed(store, key) if arguments.remove else ''}", flush=True)
    print(f"{len(keys)} images, {faults} not right", file=sys.stderr)
    return 1 if faults else 0


def _removed(store: Path, key: str) -> str:
    return ": removed, it is made again when it is asked for" if remove_image(store, key) else ": in use, not removed"


def find_key(store: Path, prefix: str) -> str:
    """Return the one key that begins so, whether or not its record can be read. Raises Conclusion."""
    found = [key for key in keys_of(store) if key.startswith(prefix)]
    if len(found) != 1:
        raise Conclusion("base-unavailable", f"{store} has {len(found) or 'no'} images {printable(prefix)}")
    return found[0]


def export(arguments: argparse.Namespace) -> int:
    """Write images for others: a bundle, or a SIF file."""
    store = Workspace.from_environment().images
    found = [find_record(store, key) for key in arguments.keys]
    if arguments.bundle:
        from pytest_otval.images.bundle import export_bundle

        for record in export_bundle(store, found, arguments.bundle):
            print(f"{record.key[:12]}  {size_text(record.bytes):>9}  {printable(record.base)}")
        print(f"{arguments.bundle}: `image import {arguments.bundle}` takes it into another store")
        return 0
    from pytest_otval.sandbox.sif import write_sif

    if len(found) > 1:
        raise OtvalUsageError("a SIF file holds one image: give one KEY, or --bundle FOLDER")
    (record,) = found
    _require_right(store, record)
    files = image_files(store, record)
    write_sif(files, [record_path(store, key) for key in (*record.below, record.key)], arguments.sif)
    print(
        f"{arguments.sif}: {len(files)} file systems; variables, user and working directory stand in its JSON objects"
    )
    return 0


def _require_right(store: Path, record: Record) -> None:
    fault = Verifier(store).fault(record.key)
    if fault:
        raise Conclusion("base-unavailable", f"{record.key[:12]}: {fault}")


def take(arguments: argparse.Namespace) -> int:
    """Take a bundle, or an image file, into the store."""
    store = Workspace.from_environment().images
    if not arguments.path.is_dir():
        from pytest_otval.images.file_import import import_file

        record = import_file(store, arguments.path)
        print(f'{record.key[:12]}  {size_text(record.bytes):>9}  docker_image = "{image_files(store, record)[-1]}"')
        return 0
    from pytest_otval.images.bundle import import_bundle

    for one in import_bundle(store, arguments.path):
        what = "new" if one.new else "was here"
        print(f"{one.record.key[:12]}  {size_text(one.record.bytes):>9}  {what:8}  {printable(one.record.base)}")
    return 0


def diff(arguments: argparse.Namespace) -> int:
    """Say what makes two images differ."""
    from pytest_otval.images.compare import Change, file_changes, package_changes, record_changes

    store = Workspace.from_environment().images
    before, after = (find_record(store, key) for key in (arguments.before, arguments.after))
    signs = {"added": "+", "removed": "-", "changed": "~"}
    parts: dict[str, Iterator[Change]] = {
        "record": record_changes(before, after),
        "packages": package_changes(before, after),
        "files": file_changes(store, before, after),
    }
    if arguments.json:
        print(json.dumps({name: [asdict(change) for change in changes] for name, changes in parts.items()}, indent=1))
        return 0
    for name, changes in parts.items():
        counts: Counter[str] = Counter()
        for change in changes:
            counts[change.what] += 1
            details = f"  {printable(change.details)}" if change.details else ""
            print(f"{signs[change.what]} {printable(change.name)}{details}")
        print(f"{name}: {', '.join(f'{counts[what]} {what}' for what in signs)}")
    return 0
