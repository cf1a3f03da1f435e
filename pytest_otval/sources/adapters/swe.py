"""Rows in the manner of SWE-bench: a repository at a commit, the patch that fixed it, and the tests that tell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.dataclasses import dataclass

from pytest_otval.sources.adapters import scale_swe
from pytest_otval.sources.adapters.base import Outcome, Record, RefusalError, convert_all
from pytest_otval.sources.adapters.diffs import ChangedFile, paths_of, read_patch
from pytest_otval.sources.adapters.fields import match_of, text_of, texts_of
from pytest_otval.sources.adapters.node_ids import check_ids, files_of, repair_ids
from pytest_otval.sources.adapters.repository_task import (
    FORGET_HISTORY,
    Network,
    RepositoryTask,
    Tests,
    ending_in_newline,
    repository_files,
)
from pytest_otval.sources.adapters.rows import Row, read_rows
from pytest_otval.sources.files import Files, text

IMAGE_COLUMNS = ("docker_image", "image_name", "image", "image_url", "environment")
"""Where sources name a row's image; the first that is there counts."""
ID_COLUMNS = ("FAIL_TO_PASS", "PASS_TO_PASS")
COLUMNS = frozenset(
    ("instance_id", "repo", "base_commit", "patch", "test_patch", "problem_statement", *ID_COLUMNS, *IMAGE_COLUMNS)
)

_IMAGE = re.compile(
    r"[a-z0-9][A-Za-z0-9._-]*(?::\d+)?(?:/[A-Za-z0-9._-]+)*(?::[A-Za-z0-9_.-]{1,128})?(?:@sha256:[0-9a-f]{64})?"
)
_REPO = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_FOLDER = re.compile(r"(/[A-Za-z0-9._-]+)+")
AbsolutePath = Annotated[str, StringConstraints(pattern=rf"^{_FOLDER.pattern}$")]

_FIRST = "first.sh"
_RUN_FIRST = f"COPY {_FIRST} /tmp/{_FIRST}\nRUN bash /tmp/{_FIRST} && rm /tmp/{_FIRST}\n"
"""Commands that a row says to run in its image before anything else."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class Swe:
    """The adapter ``swe``; its source is a table, or a folder of tables."""

    name: ClassVar[str] = "swe"

    image: str = ""
    """Image of rows that name none: ``{id}`` is the row's instance_id, ``{docker_id}`` the same as SWE-bench's images
    have it, in small letters and with ``_1776_`` for ``__``."""
    workdir: AbsolutePath = "/testbed"
    """Where images have the repository."""
    python: AbsolutePath | None = None
    """The Python in images that has the product's packages; ``python3`` on the image's PATH where there is none."""
    network: Network = "no-network"
    """Of agents: with a network they can look the fix up."""
    agent_seconds: Annotated[float, Field(gt=0)] = 3600.0
    verifier_seconds: Annotated[float, Field(gt=0)] = 1800.0
    build_seconds: Annotated[float, Field(gt=0)] = 1800.0

    def convert(self, source: Path) -> Iterator[Outcome]:
        """See ``Adapter``."""
        return convert_all(self._record(row) for row in read_rows(source, COLUMNS | scale_swe.COLUMNS))

    def _record(self, row: Row) -> Record:
        name = row.values.get("instance_id")
        if row.problem or not isinstance(name, str) or not name:
            return Record(row.place, partial(_unreadable, row.problem or "has no instance_id that is a text"))
        return Record(name, lambda _: self._files(row.values))

    def _files(self, row: Mapping[str, Any]) -> Files:
        row = scale_swe.as_swe(row) if scale_swe.is_scale_swe(row) else row
        fix = text_of(row, "patch", controls=True)
        test_patch = text_of(row, "test_patch", controls=True)
        changed, tests = read_patch(fix, "patch"), read_patch(test_patch, "test_patch")
        fail_to_pass, pass_to_pass, repaired = _ids(row, tests)
        run = files_of([*fail_to_pass, *pass_to_pass])
        fixed_paths, image = paths_of(changed), self._image(row)
        workdir = match_of(row, "workdir", _FOLDER, "absolute path") if row.get("workdir") else self.workdir
        first = text_of(row, "pre_commands", controls=True) if row.get("pre_commands") else ""
        facts = {
            "adapter": self.name,
            "instance_id": text_of(row, "instance_id"),
            "repo": match_of(row, "repo", _REPO, "OWNER/NAME"),
            "base_commit": match_of(row, "base_commit", _COMMIT, "commit"),
        }
        return repository_files(
            RepositoryTask(
                dockerfile=f"FROM {image}\nUSER root\nWORKDIR {workdir}\n"
                f"{_RUN_FIRST if first else ''}"
                f"# Commits after this one, the fix among them, are no longer in reach.\nRUN {FORGET_HISTORY}\n",
                build_files={_FIRST: text(ending_in_newline(first))} if first else {},
                workdir=workdir,
                instruction=_instruction(text_of(row, "problem_statement"), workdir),
                fix=ending_in_newline(fix),
                fixed_paths=fixed_paths,
                tests=Tests(
                    runner="pytest",
                    run=run,
                    fail_to_pass=fail_to_pass,
                    pass_to_pass=pass_to_pass,
                    patch=ending_in_newline(test_patch),
                    own_paths=[*paths_of(tests), *(path for path in run if path not in fixed_paths)],
                ),
                metadata={**facts, **({"repaired_ids": repaired} if repaired else {})},
                network=self.network,
                agent_seconds=self.agent_seconds,
                verifier_seconds=self.verifier_seconds,
                build_seconds=self.build_seconds,
                python=self.python or "",
            )
        )

    def _image(self, row: Mapping[str, Any]) -> str:
        key = next((key for key in IMAGE_COLUMNS if row.get(key)), None)
        if key is not None:
            return match_of(row, key, _IMAGE, "name of an image")
        if not self.image:
            raise RefusalError("no-image", f"has none of {', '.join(IMAGE_COLUMNS)}, and the adapter no option image")
        name = text_of(row, "instance_id")
        image = self.image.replace("{id}", name).replace("{docker_id}", name.lower().replace("__", "_1776_"))
        if not _IMAGE.fullmatch(image):
            raise RefusalError("no-image", f"{image[:80]!r} is no name of an image")
        return image


def _unreadable(why: str, _: str) -> Files:
    raise RefusalError("unreadable", why)


def _ids(row: Mapping[str, Any], tests: Sequence[ChangedFile]) -> tuple[list[str], list[str], int]:
    """Return the ids of both columns, complete, and how many had to be completed. Raises RefusalError."""
    lists: list[list[str]] = []
    repaired = 0
    for key in ID_COLUMNS:
        ids = texts_of(row, key)
        check_ids(ids, key)
        ids, count = repair_ids(ids, tests, key)
        lists.append(ids)
        repaired += count
    fail_to_pass, pass_to_pass = lists
    if not fail_to_pass:
        raise RefusalError("no-tests", "FAIL_TO_PASS is empty: doing nothing would pass")
    return fail_to_pass, pass_to_pass, repaired


def _instruction(statement: str, workdir: str) -> str:
    return (
        f"{statement.strip()}\n\n"
        "## What counts\n\n"
        f"The repository is in `{workdir}`. What you change in its files is taken and judged by tests that are not "
        "there; test files, and what configures the tests, are put back before.\n"
    )
