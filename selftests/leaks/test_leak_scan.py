"""What an image gives away: for each question a task and an image, and the nearest miss of both."""

import datetime

import pytest

from pytest_otval.checks.allow import DatasetAllows
from pytest_otval.checks.registry import run_checks
from pytest_otval.core import Severity
from pytest_otval.images.contents import Contents
from pytest_otval.leaks.scan import scan
from pytest_otval.task.allowed import Allowance
from pytest_otval.task.load import load_task
from selftests.checks.conftest import SOUND, write_task
from selftests.leaks.conftest import ADDED, AFTER, BEFORE, PATCH, ids

FIX = {"solution/fix.patch": PATCH}
SOLVE, TESTS = SOUND["solution/solve.sh"], SOUND["tests/test_outputs.py"]
LICENCE = "Permission is hereby granted, free of charge, to any person\n" * 3


def one(findings):
    (finding,) = findings
    return finding


def test_sound_image(found):
    assert found(FIX, {"app/src/app.py": BEFORE, "app/README": "x\n"}) == ()


def test_tests_in_the_image(found):
    finding = one(found({}, {"opt/t/copy.py": TESTS}))
    assert (finding.check, finding.path, finding.severity) == ("image-has-tests", "tests/test_outputs.py", "warning")
    assert finding.message == "the image has it as /opt/t/copy.py"


@pytest.mark.parametrize(
    ("edits", "image"),
    [
        ({}, {"opt/t/copy.py": TESTS + "#"}),
        ({"tests/__init__.py": LICENCE}, {"app/__init__.py": LICENCE}),
        ({"tests/LICENSE": LICENCE}, {"app/LICENSE": LICENCE}),
        ({"tests/test_tiny.py": "import app\n"}, {"app/test_tiny.py": "import app\n"}),
        # Input that agent and verifier both have.
        ({"tests/input.csv": "1,2,3\n" * 20}, {"app/input.csv": "1,2,3\n" * 20}),
        # What a COPY brings is a finding of the static stage.
        (
            {
                "environment/tests/test_outputs.py": TESTS,
                "environment/Dockerfile": "FROM debian:bookworm-slim\nCOPY tests /app/tests/\n",
            },
            {"app/tests/test_outputs.py": TESTS},
        ),
    ],
    ids=["another content", "package", "licence", "tiny", "input", "copied"],
)
def test_tests_not_in_the_image(found, edits, image):
    assert found(edits, image) == ()


def test_what_a_build_unpacks_elsewhere_is_found_though_the_context_has_it(found):
    files = {"environment/hidden/test_outputs.py": TESTS}
    assert ids(found(files, {"opt/test_outputs.py": TESTS})) == ["image-has-tests"]


def test_solution_in_the_image(found):
    finding = one(found({}, {"root/.x": SOLVE}))
    assert (finding.check, finding.path, finding.severity) == ("image-has-solution", "solution/solve.sh", "error")


def test_solution_that_brings_a_file_as_it_is(found):
    data = "a table that nobody changes, of some length\n"
    edits = {"solution/table.txt": data, "solution/new.py": "print('the new program of the solution')\n"}
    assert found(edits, {"app/table.txt": data}) == ()
    assert ids(found(edits, {"app/other.txt": data})) == ["image-has-solution"]


def test_prebuilt_image_has_no_base(found):
    assert ids(found({}, {"root/x": SOLVE}, prebuilt=True)) == ["image-has-solution"]


def test_what_the_base_has_is_not_new(packed):
    base, same, more = packed({"root/x": SOLVE}, {"root/x": SOLVE}, {"root/x": SOLVE, "app/y": "y"})
    with Contents((base, more), (base,)) as contents:
        assert [sorted(index.stamps) for index in contents.indexes] == [["app/y", "root/x"]]
    # A whole file that was packed anew has what its base has.
    with Contents((more,), (base,)) as contents:
        assert [sorted(index.stamps) for index in contents.indexes] == [["app/y"]]
    with Contents((same,), (same,)) as contents:
        assert contents.indexes == []


def test_file_that_a_later_layer_removes_is_not_there(found):
    assert found({}, {"root/x": SOLVE}, {"root/x": None}) == ()
    assert found({}, {"root/x": SOLVE}, {"root/x": "another"}) == ()
    assert ids(found({}, {"root/x": SOLVE}, {"root/y": None})) == ["image-has-solution"]


def test_system_folders_are_left_out(found):
    assert found({}, {"usr/share/x": SOLVE, "var/lib/dpkg/info/y": SOLVE}) == ()
    assert ids(found({}, {"usr/local/bin/x": SOLVE})) == ["image-has-solution"]


def test_applied_hunk(found):
    finding = one(found(FIX, {"app/src/app.py": f"# moved down\n{AFTER}"}))
    assert (finding.check, finding.path, finding.line) == ("image-has-gold-lines", "solution/fix.patch", 7)
    assert finding.severity is Severity.ERROR
    assert finding.message == "this hunk is applied in the image, at /app/src/app.py:3"


def test_gold_lines_in_a_backup(found):
    finding = one(found(FIX, {"app/src/app.py": BEFORE, "root/.cache/old": f"x\n{ADDED}"}))
    assert (finding.check, finding.line, finding.severity) == ("image-has-gold-lines", 7, "error")
    assert finding.message.endswith("adds to src/app.py, at /root/.cache/old:2")


def test_gold_lines_of_a_patch_in_the_image(found):
    changed = PATCH.replace("# the end", "# the very end")
    assert ids(found(FIX, {"tmp/x.diff": changed})) == ["image-has-gold-lines"]


def test_gold_lines_from_a_here_document(found):
    solve = f"#!/bin/bash\ncd /app\npatch -p1 <<'EOF'\n{PATCH}EOF\n"
    finding = one(found({"solution/solve.sh": solve}, {"app/src/app.py": AFTER}))
    assert (finding.path, finding.line) == ("solution/solve.sh", 10)


@pytest.mark.parametrize(
    "image",
    [
        # The same lines at another place of the changed file.
        {"app/src/app.py": f"{BEFORE}\ndef other():\n{ADDED}"},
        {"app/other.py": ADDED.replace("total -=", "total +=")},
        {"app/other.bin": b"\0" + ADDED.encode()},
        {"usr/lib/python3/x.py": ADDED},
        {"usr/local/lib/python3.11/site-packages/a/other.py": ADDED},
        {f"app/licence{number}.py": ADDED for number in range(3)},
    ],
    ids=["elsewhere in it", "another line", "binary", "system", "package", "in many files"],
)
def test_no_gold_lines(found, image):
    assert found(FIX, image) == ()


def test_gold_lines_in_an_installed_package(found):
    image = {"usr/local/lib/python3.11/site-packages/src/app.py": AFTER}
    assert ids(found(FIX, image)) == ["image-has-gold-lines"]


def test_gold_lines_in_a_folder_of_the_system_that_the_patch_names(found):
    patch = PATCH.replace("src/app.py", "usr/lib/src/app.py")
    assert ids(found({"solution/fix.patch": patch}, {"usr/lib/src/app.py": AFTER})) == ["image-has-gold-lines"]


def test_one_hunk_of_many_elsewhere_is_a_warning(found):
    more = "\n".join(f"+    another_line_of_the_fix_{number} = compute({number})" for number in range(20))
    patch = f"{PATCH}@@ -10,1 +13,21 @@\n x\n{more}\n"
    finding = one(found({"solution/fix.patch": patch}, {"app/other.py": ADDED}))
    assert (finding.check, finding.severity) == ("image-has-gold-lines", "warning")


def test_moved_lines_are_no_gold(found):
    removed = "".join(f"-{line}\n" for line in ADDED.splitlines())
    patch = f"{PATCH}--- a/old.py\n+++ b/old.py\n@@ -1,5 +1,1 @@\n x\n{removed}"
    assert found({"solution/fix.patch": patch}, {"app/old.py": f"x\n{ADDED}", "app/src/app.py": BEFORE}) == ()


def test_stale_bytecode(found):
    pyc = "app/__pycache__/test_outputs.cpython-311.pyc"
    finding = one(found({}, {pyc: b"x"}))
    assert (finding.check, finding.path) == ("image-stale-pyc", "tests/test_outputs.py")
    assert found({}, {pyc: b"x", "app/test_outputs.py": "another\n"}) == ()
    assert found({}, {"app/__pycache__/other.cpython-311.pyc": b"x"}) == ()
    assert found({}, {"usr/local/lib/p/__pycache__/test_outputs.cpython-311.pyc": b"x"}) == ()


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({"logs/verifier/reward.txt": "1"}, [("image-reward-there", "warning")]),
        ({"logs/verifier/reward.json": "{}", "logs/a": "x"}, [("image-reward-there", "warning")]),
        ({"logs/agent/x": "x"}, [("image-reward-there", "info")]),
        ({"var/logs/verifier/reward.txt": "1"}, []),
    ],
)
def test_reward_there(found, image, expected):
    assert [(one.check, one.severity) for one in found({}, image)] == expected


def test_allowed_in_task_toml(found):
    toml = SOUND["task.toml"] + '[metadata.otval.allow]\nimage-has-solution = "the agent is to improve it"\n'
    finding = one(found({"task.toml": toml}, {"root/x": SOLVE}))
    assert (finding.check, finding.allowed) == ("image-has-solution", "the agent is to improve it")
    assert finding.allowed_by == "task.toml:10"
    assert ids(found({"task.toml": toml}, {"root/x": "x"})) == ["allow-unused"]


def test_allowed_by_the_dataset(found):
    allows = DatasetAllows(
        [Allowance(check="image-has-solution", tasks="*", reason="why", owner="o", expires=datetime.date(2999, 1, 1))]
    )
    assert one(found({}, {"root/x": SOLVE}, allows=allows)).allowed == "why"


def test_what_allows_a_finding_of_the_static_stage_is_left_to_that(found, tmp_path):
    toml = SOUND["task.toml"] + '[metadata.otval.allow]\nfiles-required = "why"\nimage-has-tests = "why"\n'
    assert [one.message for one in found({"task.toml": toml}, {"x": "x"})] == [
        "allows image-has-tests, which is not found in the task"
    ]
    told = [one for one in run_checks(load_task(tmp_path / "task", "data")) if one.check.startswith("allow-")]
    assert [one.message for one in told] == ["allows files-required, which is not found in the task"]


def test_sif_is_not_looked_into(tmp_path):
    write_task(tmp_path / "task", {})
    findings = scan(load_task(tmp_path / "task", "d"), (tmp_path / "x.sif",), (), DatasetAllows(), tmp_path)
    assert [(one.check, one.severity) for one in findings] == [("image-not-read", "info")]
