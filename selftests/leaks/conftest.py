"""Miniature tasks beside images that are packed in milliseconds, without a container."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from pytest_otval.checks.allow import DatasetAllows
from pytest_otval.images.pack import packing
from pytest_otval.leaks.scan import scan
from pytest_otval.task.load import load_task
from selftests.checks.conftest import write_task

PATCH = """\
diff --git a/src/app.py b/src/app.py
--- a/src/app.py
+++ b/src/app.py
@@ -1,3 +1,6 @@
 import os
-    return None
+    total = sum(entry.amount for entry in ledger)
+    for entry in ledger.pending():
+        total -= entry.reserved_amount
+    return total
 # the end
"""
"""Its added lines begin at line 7."""

BEFORE = "import os\n    return None\n# the end\n"
ADDED = """\
    total = sum(entry.amount for entry in ledger)
    for entry in ledger.pending():
        total -= entry.reserved_amount
    return total
"""
AFTER = f"import os\n{ADDED}# the end\n"


def pack(file: Path, entries) -> Path:
    """Pack ``{path: content}``; None is a whiteout, ``("link", target)`` a link."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, content in entries.items():
            header = tarfile.TarInfo(path)
            header.mtime, header.mode = 5, 0o644
            if content is None:
                header.type = tarfile.CHRTYPE
            elif isinstance(content, tuple):
                header.type, header.linkname = tarfile.SYMTYPE, content[1]
            else:
                content = content.encode() if isinstance(content, str) else content
                header.size = len(content)
            tar.addfile(header, io.BytesIO(content) if isinstance(content, bytes) else None)
    with packing(file, all_root=True, folders=()) as stream, io.FileIO(stream, "w", closefd=False) as target:
        target.write(out.getvalue())
    return file


@pytest.fixture
def packed(tmp_path):
    """Return the files of an image of layers, lowest first."""
    made = []

    def make(*layers):
        made.extend(layers)
        start = len(made) - len(layers)
        return tuple(pack(tmp_path / f"{start + number}.sqfs", layer) for number, layer in enumerate(layers))

    return make


@pytest.fixture
def found(packed, tmp_path):
    """Scan a task with edits beside an image of layers; the first one is the base unless ``prebuilt``."""

    def run(edits, *layers, prebuilt=False, allows=None):
        folder = tmp_path / "task"
        write_task(folder, edits)
        files = packed(*(layers if prebuilt else ({"etc/debian_version": "12\n"}, *layers)))
        base = () if prebuilt else files[:1]
        return scan(load_task(folder, "data"), files, base, allows or DatasetAllows(), tmp_path)

    return run


def ids(findings) -> list[str]:
    return [finding.check for finding in findings]


@pytest.fixture
def repository(tmp_path):
    """A git repository to make commits in; ``files()`` returns it as ``{path: content}`` below /app."""

    class Repository:
        path = tmp_path / "repository"

        def git(self, *words: str) -> str:
            who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
            argv = ["git", "-C", str(self.path), *who, *words]
            return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

        def commit(self, files) -> str:
            for name, text in files.items():
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                (self.path / name).write_text(text)
            self.git("add", "-A")
            self.git("commit", "-qm", "change")
            return self.git("rev-parse", "HEAD")

        def files(self):
            paths = [path for path in self.path.rglob("*") if path.is_file() and not path.is_symlink()]
            return {f"app/{path.relative_to(self.path)}": path.read_bytes() for path in paths}

    made = Repository()
    made.path.mkdir()
    made.git("init", "-q")
    return made
