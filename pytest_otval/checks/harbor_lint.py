"""``[metadata.harbor.lint]``: rules of `harbor lint` that a task or dataset turns off, and our checks like them.

As in Harbor 0.26: tables with ``select``, ``extend-select`` and ``ignore``; that of dataset.toml first, then the
task's. What Harbor has off by default stays on here: our checks are not its rules.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

ALL = "ALL"

RULES: Mapping[str, Collection[str]] = {
    "invalid-task-config": (),
    "unknown-config-field": ("toml-unknown-field", "toml-misplaced-artifacts"),
    "invalid-task-files": ("files-required", "files-instruction-empty", "entries-link-escape", "entries-special"),
    "unused-harborignore": (),
    "root-agent": (),
    "shared-verifier": (),
    "overlapping-artifacts": ("toml-artifact-overlap",),
    "artifact-log-overlap": (),
    "compose-privileged": ("compose-privileged",),
    "compose-additional-capabilities": ("compose-privileged",),
    "compose-writable-bind-mount": ("compose-host-folder",),
    "compose-external-bind-mount": ("compose-host-folder", "compose-docker-socket"),
    "compose-symlink-bind-mount": (),
    "unpinned-image": ("docker-base-unpinned",),
    "unpinned-python-dependency": ("docker-packages-unpinned", "network-unpinned"),
    "verifier-runtime-install": ("network-at-verify",),
    "verifier-network-download": ("network-at-verify",),
    "agent-image-test-leak": ("docker-tests-copied", "docker-solution-copied"),
}
"""Every rule of Harbor 0.26, and our checks that coincide with it."""


def turned_off(*tables: Mapping[str, Any]) -> tuple[Mapping[str, str], list[str]]:
    """Return our checks that tables turn off, each with the rule, and what in the tables `harbor lint` would refuse.

    Of tables that say less about a rule than a later one, the later counts. A check that several rules speak of is off
    when all of them are.
    """
    on, refused = set(RULES), []
    for table in tables:
        unknown = [name for name in table if name not in ("select", "extend-select", "ignore")]
        lists = {key: table.get(key, []) for key in ("select", "extend-select", "ignore")}
        wrong = [key for key, value in lists.items() if not _are_rules(value, key != "ignore")]
        if unknown or wrong:
            refused += [*unknown, *wrong]
            continue
        chosen = set(lists["select"]) if "select" in table else set(on)
        chosen |= set(lists["extend-select"])
        on = (set(RULES) if ALL in chosen else chosen) - set(lists["ignore"])
    off: dict[str, str] = {}
    for rule, checks in RULES.items():
        for check in checks if rule not in on else ():
            if not any(check in others for name, others in RULES.items() if name in on):
                off[check] = rule
    return off, refused


def _are_rules(value: Any, all_too: bool) -> bool:
    if not isinstance(value, list):
        return False
    return all(isinstance(name, str) and (name in RULES or (all_too and name == ALL)) for name in value)
