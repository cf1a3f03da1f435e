"""Patches of task.toml."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_otval.sources.editor import TaskEditor
from pytest_otval.sources.library.needs import found
from pytest_otval.sources.patches import Patch


def time_limits(agent: float, verifier: float) -> Patch:
    """Limits in seconds for tasks that have none, under which an agent may run for ever."""

    def change(task: TaskEditor) -> None:
        settings = task.settings()
        for table, seconds in (("agent", agent), ("verifier", verifier)):
            if "timeout_sec" not in settings.get(table, {}):
                task.put(table, {"timeout_sec": seconds})

    return Patch("time-limits", "toml-timeouts-present", change, found("toml-timeouts-present"))


def least_limits(agent: float, verifier: float) -> Patch:
    """Limits in seconds that no limit of a task or of its steps is to be below."""
    least = {"agent": agent, "verifier": verifier}

    def short(document: Any) -> Iterator[tuple[Any, float]]:
        """Yield each table with a limit that is too short, and what it should be."""
        steps = document.get("steps", [])
        for above in (document, *(step for step in steps if hasattr(step, "get"))):
            for name, seconds in least.items():
                table = above.get(name, {})
                limit = table.get("timeout_sec") if hasattr(table, "get") else None
                if isinstance(limit, int | float) and not isinstance(limit, bool) and 0 < limit < seconds:
                    yield table, seconds

    def change(task: TaskEditor) -> None:
        with task.toml() as document:
            for table, seconds in list(short(document)):
                table["timeout_sec"] = seconds

    return Patch("least-limits", "timeout-short", change, lambda task: any(short(task.settings())))


def resources(cpus: int, memory_mb: int, storage_mb: int) -> Patch:
    """Cores, and memory and storage in MiB, for tasks that leave them to whoever runs them."""

    def change(task: TaskEditor) -> None:
        there = task.settings().get("environment", {})
        wanted = {"cpus": cpus, "memory_mb": memory_mb, "storage_mb": storage_mb}
        task.put("environment", {name: value for name, value in wanted.items() if name not in there})

    return Patch("resources", "toml-resources-absent", change, found("toml-resources-absent"))


def task_names() -> Patch:
    """[task].name of a task whose folder is called otherwise: reports and registries know it by the former."""

    def change(task: TaskEditor) -> None:
        with task.toml() as document:
            organisation = str(document["task"]["name"]).rpartition("/")[0]
            document["task"]["name"] = f"{organisation}/{task.name}" if organisation else task.name

    return Patch("task-names", "toml-name-folder", change, found("toml-name-folder"))
