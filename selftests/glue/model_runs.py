"""Whole runs that ask models: pytest processes, real containers, a real server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pytest_otval.images.model import Image
from pytest_otval.ledger import read_ledger
from selftests.conftest import REPOSITORY
from selftests.llm.server import Running


@dataclass
class Project:
    """A dataset of one task, and a server."""

    root: Path
    server: Running
    outs: list[Path] = field(default_factory=list)

    def start(self, *args, resumes=None, **variables):
        """Start a run, or go on with one."""
        self.outs.append(resumes or self.root / f"run{len(self.outs)}")
        words = [sys.executable, "-P", "-m", "pytest", "-p", "otval_no_waits", "-p", "no:cacheprovider"]
        words += (
            [f"--otval-resume={resumes}", f"--otval-base-url={self.server.url}"]
            if resumes
            else ([f"--otval-out={self.outs[-1]}"])
        )
        words += map(str, args)
        env = {
            **os.environ,
            "OT_WORKSPACE": str(self.root / "workspace"),
            "OT_CLUSTER": "here",
            "PYTHONPATH": str(Path(__file__).parent),
            **variables,
        }
        return subprocess.Popen(
            words,
            cwd=self.root,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *args, **more):
        process = self.start(*args, **more)
        text, _ = process.communicate()
        return process.returncode, text

    def results(self, out=None):
        """Lines of answers of a run, by id."""
        found = {}
        with suppress(FileNotFoundError):
            for line in read_ledger(out or self.outs[-1]):
                if line["kind"] == "result":
                    found.setdefault(line["id"], []).append(line)
        return found


@contextmanager
def model_project(root: Path, image: Image, policies: str, profile: str = "") -> Iterator[Project]:
    """A project without datasets, with an image and a cluster of its own; in its ``profile`` URL is the server's."""
    (root / "clusters").mkdir()
    text = (REPOSITORY / "clusters" / "local.toml").read_text()
    local = text.replace('["registry", "bootstrap"]', '["bootstrap"]') + profile
    (root / "pytest.ini").touch()
    (root / "datasets").mkdir()
    store = root / "workspace" / "images"
    store.mkdir(parents=True)
    for file in image.files:
        for path in (file, file.with_suffix(".json")):
            # The same bytes, without a copy: nobody writes into an image.
            (store / path.name).symlink_to(path)
    file = root / "policies.toml"
    file.write_text(policies)
    with Running(file) as server:
        (root / "clusters" / "here.toml").write_text(local.replace("URL", server.url))
        yield Project(root, server)
