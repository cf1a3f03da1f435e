"""``python -m pytest_otval checks``, and that it knows every finding there can be."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_otval
from pytest_otval.__main__ import main
from pytest_otval.checks.catalogue import catalogue, example_of
from pytest_otval.checks.elsewhere import ELSEWHERE, NEVER_ALLOWED
from pytest_otval.checks.registry import all_checks
from pytest_otval.core import Severity

PACKAGE = Path(pytest_otval.__file__).parent
_TOLD_ELSEWHERE = re.compile(r'"((?:toml|ds|allow|image|weak)-[a-z-]+)"')


def test_every_id_that_other_code_tells_is_known():
    sources = [*(PACKAGE / "task").rglob("*.py"), PACKAGE / "stages" / "dataset.py", PACKAGE / "checks" / "allow.py"]
    sources += [PACKAGE / "leaks" / "scan.py", PACKAGE / "stages" / "adversary.py"]
    told = {id for path in sources for id in _TOLD_ELSEWHERE.findall(path.read_text())}
    assert told
    assert told - ELSEWHERE.keys() == set()
    assert ELSEWHERE.keys() - told == set()


def test_no_id_is_told_twice():
    assert ELSEWHERE.keys() & all_checks().keys() == set()
    assert ELSEWHERE.keys() >= NEVER_ALLOWED


def test_it_lists_all_by_family(capsys):
    assert main(["checks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert listed == list(catalogue())
    families = [line for line in lines[:-2] if line and not line.startswith(" ")]
    assert len(families) == len(set(families))
    assert lines[-1].startswith(f"{len(listed)} checks")


def test_as_json(capsys):
    assert main(["checks", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert [entry["id"] for entry in entries] == list(catalogue())
    for entry in entries:
        assert entry["severity"] in set(map(str, Severity))
        assert entry["explains"] and entry["fix"] and "\n" not in entry["explains"] + entry["fix"]
    assert {entry["id"] for entry in entries if entry["otval_fix"]} == {
        "text-crlf",
        "text-bom",
        "scripts-shebang",
        "scripts-exec-bit",
        "toml-deprecated",
        "toml-parse",
    }


def test_it_explains_one_with_an_example(capsys):
    assert main(["checks", "scripts-exec-bit"]) == 0
    out = capsys.readouterr().out
    check = all_checks()["scripts-exec-bit"]
    assert check.explains in out and check.fix in out
    assert "example, found at tests/test.sh:2:" in out
    assert "  tests/run.sh\n  | (mode 0644)\n" in out
    assert main(["checks", "scripts-exec-bit", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["example"]["line"] == 2


@pytest.mark.parametrize("check", sorted(catalogue()))
def test_each_can_be_explained(check, capsys):
    assert main(["checks", check]) == 0
    assert capsys.readouterr().out.startswith(f"{check} (")


def test_an_unknown_id_is_wrong_usage(capsys):
    assert main(["checks", "scripts-exec-bits"]) == 4
    assert capsys.readouterr().err == ("error: there is no check 'scripts-exec-bits': did you mean scripts-exec-bit?\n")


def test_a_file_that_is_not_there_is_shown_as_that():
    assert example_of("files-required")["files"] == {"instruction.md": "(not there)"}


def test_without_a_checkout_there_are_no_examples(tmp_path):
    (tmp_path / "pytest_otval").symlink_to(PACKAGE)
    script = "from pytest_otval.checks import catalogue\nprint(catalogue.example_of('text-bom'))\n"
    script = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n{script}"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout == "None\n"


def test_a_reader_that_has_seen_enough_is_no_error():
    command = f"{sys.executable} -m pytest_otval checks | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert (done.stdout.count("\n"), done.stderr) == (1, "")
