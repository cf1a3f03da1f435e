"""A real build that plants the fix."""

import pytest

from pytest_otval.task.load import load_task
from selftests.checks.conftest import write_task
from selftests.leaks.conftest import AFTER, BEFORE, PATCH

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("planted", [True, False])
def test_planted_hunk_is_found_at_its_line(ask_real, tmp_path, planted):
    text = AFTER if planted else BEFORE
    dockerfile = f"FROM debian:bookworm-slim\nWORKDIR /app/src\nRUN cat > app.py <<'EOF'\n{text}EOF\nCOPY note /app/\n"
    folder = tmp_path / "set" / "tasks" / "planted"
    files = {"environment/Dockerfile": dockerfile, "environment/note": "x\n", "solution/fix.patch": PATCH}
    folder.mkdir(parents=True)
    write_task(folder, files)
    result = ask_real("build", load_task(folder, "set"))
    if not planted:
        assert (result.reason, result.facts["checks"]) == ("expected", [])
        return
    assert result.reason == "image-leaks"
    assert result.headline.startswith(
        "solution/fix.patch:7: image-has-gold-lines: this hunk is applied in the image, at /app/src/app.py:2"
    )
