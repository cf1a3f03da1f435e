"""The findings of a run as SARIF 2.1.0, which code hosts and editors show at the lines they are about.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. One result a line, one result in memory at a time.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pytest_otval.checks.catalogue import Entry, catalogue
from pytest_otval.core import Severity
from pytest_otval.report.results import Results, split_id
from pytest_otval.report.text import clean

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "DATASETS"
"""What addresses of files are relative to: the folder that ``datasets/`` lies in."""

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def write_sarif(results: Results, target: Path) -> int:
    """Write the findings of all static items of a run; return how many. Raises OSError."""
    known = catalogue()
    rules = {name: number for number, name in enumerate(known)}
    others: dict[str, int] = {}
    count = 0
    with target.open("w", encoding="utf-8") as file:
        file.write(f'{{"$schema": {json.dumps(SCHEMA)}, "version": "2.1.0", "runs": [{{\n"results": [')
        for line in results.lines():
            for finding in line.get("checks", ()):
                name = finding["check"]
                if name not in rules and name not in others:
                    others[name] = len(rules) + len(others)
                file.write(",\n" if count else "\n")
                file.write(json.dumps(_result(line, finding, {**rules, **others}[name])))
                count += 1
        file.write(f'\n],\n"tool": {json.dumps(_tool(known, others))},\n')
        file.write(f'"originalUriBaseIds": {json.dumps(_bases())}, "columnKind": "unicodeCodePoints"}}]}}\n')
    return count


def _tool(known: Mapping[str, Entry], others: Mapping[str, int]) -> dict[str, Any]:
    rules = [_rule(entry) for entry in known.values()]
    # A check of another plugin, which is not asked when a report is made.
    rules += [{"id": clean(name)} for name in others]
    return {"driver": {"name": "pytest-otval", "semanticVersion": version("pytest-otval"), "rules": rules}}


def _rule(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "shortDescription": {"text": entry.explains},
        "help": {"text": f"To repair it: {entry.fix}"},
        "defaultConfiguration": {"level": _LEVELS[Severity(entry.severity)]},
        "properties": {"family": entry.family, "otvalFix": entry.repairs},
    }


def _bases() -> dict[str, Any]:
    return {ROOT: {"description": {"text": "the folder that datasets/ lies in"}}}


def _result(line: Mapping[str, Any], finding: Mapping[str, Any], rule: int) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(line["id"], finding["path"]), "uriBaseId": ROOT}}
    if finding["line"] is not None:
        place["region"] = {"startLine": max(1, finding["line"])}
    result = {
        "ruleId": clean(finding["check"]),
        "ruleIndex": rule,
        "level": _LEVELS[Severity(finding["severity"])],
        "message": {"text": clean(finding["message"] + (f" ({finding['fix']})" if finding["fix"] else ""))},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"finding/v1": _fingerprint(line, finding)},
        "properties": {"item": line["id"], "taskDigest": line["task_digest"]},
    }
    return {**result, "suppressions": list(_suppressions(finding))}


def _suppressions(finding: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield why a finding is allowed; none means that it is not."""
    if not finding.get("allowed"):
        return
    by = finding["allowed_by"]
    kind = "external" if by.startswith("dataset.toml") else "inSource"
    yield {"kind": kind, "status": "accepted", "justification": clean(f"{finding['allowed']} ({by})")}


def _uri(id: str, path: str) -> str:
    """Return the address of a file of a task, or of a dataset, as it is in a folder of datasets."""
    dataset, task, _ = split_id(id)
    folder = posixpath.join("datasets", dataset, "tasks", task) if task else posixpath.join("datasets", dataset)
    return quote(posixpath.normpath(posixpath.join(folder, path)), safe="/")


def _fingerprint(line: Mapping[str, Any], finding: Mapping[str, Any]) -> str:
    """Return what stays the same when lines move: the same message about the same file of the same task."""
    facts = (line["id"], finding["check"], finding["path"], finding["message"])
    return hashlib.sha256("\0".join(facts).encode("utf-8", "replace")).hexdigest()
