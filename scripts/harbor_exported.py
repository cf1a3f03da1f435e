"""Writes exported.json: how the real Harbor reads a dataset that was exported. Usage: harbor_exported.py FOLDER OUT

Run it with a Python >= 3.12 that has harbor==0.26.0, as harbor_golden.py, and only when exports change or another
version of Harbor is followed:

    pytest selftests/sources/test_export_harbor.py --basetemp=DIR
    VENV/bin/python scripts/harbor_exported.py DIR/*0/effect selftests/data/harbor/exported.json
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path


def main(folder: Path, out: Path) -> None:
    """Read an exported dataset in each way that Harbor has, and write what it said."""
    from harbor.cli.sync import sync_dataset
    from harbor.models.dataset.manifest import DatasetManifest
    from harbor.models.job.config import DatasetConfig

    file = folder / "dataset.toml"
    manifest = DatasetManifest.from_toml_file(file)
    runs = asyncio.run(DatasetConfig(path=folder).get_task_configs())
    with tempfile.TemporaryDirectory() as scratch:
        # It writes the manifest anew.
        shutil.copytree(folder, Path(scratch) / "copy")
        synced = sync_dataset(Path(scratch) / "copy")
    facts = {
        "harbor": version("harbor"),
        "file": f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}",
        "dataset": manifest.dataset.name,
        "tasks": {task.name: task.digest for task in manifest.tasks},
        "run": [run.path.name for run in runs],
        "synced": {one.name: one.source for one in synced},
    }
    out.write_text(f"{json.dumps(facts, indent=1)}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
