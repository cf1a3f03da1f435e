"""What Harbor 0.26 made of an export, written down by scripts/harbor_exported.py, holds for the export of today."""

import hashlib
import json

import tomli

from pytest_otval.report.results import read_results
from pytest_otval.sources.export import Export, export
from pytest_otval.sources.fates import fates
from pytest_otval.sources.origin import read_recipe
from pytest_otval.task.digest import task_digest
from pytest_otval.task.source import source_of
from selftests.conftest import REPOSITORY
from selftests.report.ledgers import line, make_run

EXAMPLE = REPOSITORY / "docs" / "examples" / "effect"
GOLDEN = json.loads((REPOSITORY / "selftests" / "data" / "harbor" / "exported.json").read_text())


def test_harbor_reads_it_and_finds_every_digest_right(tmp_path):
    source = source_of(EXAMPLE / "source")
    names, _ = source.names()
    digests = {name: task_digest(source.folder(name, tmp_path)) for name in names}
    run = make_run(tmp_path / "run", *(line(name, task_digest=digest) for name, digest in digests.items()))
    results = read_results(run)
    what = Export("effect", EXAMPLE, source, [results], fates(results.rows), read_recipe(EXAMPLE).source)
    export(what, tmp_path / "out", folders=tmp_path / "effect")
    file = tmp_path / "effect" / "dataset.toml"
    # The very file that Harbor read.
    assert f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}" == GOLDEN["file"]
    manifest = tomli.loads(file.read_text())
    assert manifest["dataset"]["name"] == GOLDEN["dataset"]
    assert {task["name"]: task["digest"] for task in manifest["tasks"]} == GOLDEN["tasks"]
    assert GOLDEN["run"] == names
    assert GOLDEN["synced"] == dict.fromkeys(GOLDEN["tasks"], "unchanged")
