"""pytest's own flags, with tasks. docs/pytest.md has a row for each, which names its test here."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from selftests.glue.conftest import STUB, ids

pytest_plugins = ["pytester"]

OWN = "datasets/demo/dataset.toml::static"
MIXED = {
    "good": {},
    "wrong": {"oracle": "wrong-reward too low"},
    "broken": {"build": "build-failed make", "oracle": "image-failed no image", "noop": "image-failed no image"},
    "ours": {"noop": "host-disk-full no space"},
    "none": {"oracle": "no-solution nothing there"},
}
"""A task for each verdict."""

STAGES = ("static", "build", "oracle", "noop")

both = pytest.mark.parametrize("workers", ["-n0", "-n2"])


def run(project, workers, *args):
    """Run in this process, or with workers in processes of their own."""
    return project.run(*args) if workers == "-n0" else project.process(workers, "-p", "cacheprovider", *args)


def ran(project):
    """The ids that the last run answered, in their order."""
    return list(project.ledger())


# --- what is chosen --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("good", ids("good")),
        ("GOOD", ids("good")),
        ("o and noop and not good", ids("broken", "none", "ours", "wrong", stages=("noop",))),
        ("demo and static", [OWN, *ids("broken", "good", "none", "ours", "wrong", stages=("static",))]),
    ],
)
def test_k(project, expression, expected):
    project.dataset(tasks=MIXED)
    assert project.collect("datasets/demo", "-k", expression) == expected


def test_k_with_workers(project):
    project.dataset(tasks=MIXED)
    project.process("-n2", "datasets/demo", "-k", "good and not noop")
    assert sorted(ran(project)) == sorted(ids("good")[:3])


def test_k_hears_the_words_of_a_conftest(project):
    """So no task can be left out by its name before its nodes are there."""
    project.dataset()
    project.pytester.makeconftest(
        "def pytest_itemcollected(item): item.extra_keyword_matches.update({'hard'} if '/b/' in item.nodeid else ())"
    )
    assert project.collect("datasets/demo", "-k", "hard") == ids("b")


@both
def test_m(project, workers):
    project.dataset()
    assert run(
        project, workers, "datasets/demo", "-m", "not static and not oracle and not adversary and not hermetic"
    ).counts == {"passed": 4}


def test_m_with_strict_markers(project):
    project.dataset()
    assert project.run("--strict-markers", "datasets/demo", "-m", "oracle").counts == {"passed": 2}
    assert project.run("--strict-config", "datasets/demo", "-m", "oracle").counts == {"passed": 2}


def test_deselect(project):
    """As with every test, by the beginning of an id."""
    project.dataset(tasks={"a": {}, "a2": {}, "b": {}})
    assert project.collect("datasets/demo", "--deselect", "datasets/demo/tasks/a/") == [OWN, *ids("a2", "b")]
    assert project.collect("datasets/demo", "--deselect", "datasets/demo/tasks/a") == [OWN, *ids("b")]
    assert project.collect("datasets/demo/tasks/a", "--deselect", ids("a")[0]) == ids("a")[1:]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--ignore=datasets/demo/tasks/a"], [OWN, *ids("b", "b2")]),
        (["--ignore=datasets/demo/tasks/a", "--ignore={root}/datasets/demo/tasks/b2"], [OWN, *ids("b")]),
        (["--ignore-glob=*/tasks/b*"], [OWN, *ids("a")]),
        (["--ignore-glob=datasets/demo/tasks/?"], [OWN, *ids("b2")]),
        (["--ignore=datasets/demo/tasks"], [OWN]),
        (["--ignore=datasets/demo/tasks/none", "--ignore=elsewhere"], [OWN, *ids("a", "b", "b2")]),
    ],
)
def test_ignore(project, options, expected):
    project.dataset(tasks={"a": {}, "b": {}, "b2": {}})
    assert project.collect("datasets/demo", *(option.format(root=project.root) for option in options)) == expected


def test_ignore_leaves_out_a_dataset_of_a_folder_and_nothing_that_is_named(project):
    project.dataset()
    project.dataset("zoo", {"z": {}})
    assert project.collect("datasets", "--ignore=datasets/zoo") == [OWN, *ids("a", "b")]
    assert project.collect("datasets", "--ignore-glob=*/demo") == project.collect("datasets/zoo")
    named = ["datasets/demo/tasks/a", ids("b")[3]]
    assert project.collect(*named, "--ignore=datasets/demo", "--ignore-glob=*") == [*ids("a"), ids("b")[3]]
    assert project.collect("datasets/demo", "--ignore=datasets/demo") == [OWN, *ids("a", "b")]
    assert project.collect("datasets/demo", named[0], "--ignore-glob=*/tasks/*") == [OWN, *ids("a")]


@both
def test_paths_and_node_ids(project, workers):
    project.dataset()
    run(project, workers, "datasets/demo/tasks/b", ids("a")[2])
    assert sorted(ran(project)) == sorted([ids("a")[2], *ids("b")])


@both
def test_a_file_of_arguments(project, workers):
    project.dataset()
    (project.root / "list.txt").write_text("\n".join([*ids("b"), ids("a")[2]]))
    run(project, workers, "@list.txt")
    assert sorted(ran(project)) == sorted([ids("a")[2], *ids("b")])


def test_keep_duplicates(project):
    """A stage is asked once: ``--otval-repeat`` asks it more often."""
    project.dataset()
    project.run("--keep-duplicates", "datasets/demo/tasks/a", "datasets/demo/tasks/a", ids("a")[0])
    assert ran(project) == ids("a")


def test_pyargs(project):
    project.dataset()
    assert project.collect("--pyargs", "datasets/demo/tasks/a") == ids("a")


@both
def test_co(project, workers):
    project.dataset(tasks=MIXED)
    outcome = run(project, workers, "--co", "-q", "datasets/demo")
    assert outcome.ids == [OWN, *ids("broken", "good", "none", "ours", "wrong")]
    assert not project.runs[-1].exists()
    counted = run(project, workers, "--co", "-qq", "datasets/demo").lines
    assert "datasets/demo/tasks/good/task.toml: 4" in counted


# --- what was said last time -----------------------------------------------------------------------------------------


@both
def test_lf(project, workers):
    project.dataset(tasks=MIXED)
    run(project, workers, "datasets/demo")
    failed = [ids("broken")[1], ids("ours")[3], ids("wrong")[2]]
    run(project, workers, "--lf", "datasets/demo")
    assert sorted(ran(project)) == failed
    run(project, workers, "--lf", "datasets/demo/tasks/wrong")
    assert ran(project) == [ids("wrong")[2]]


def test_lf_when_all_is_well(project):
    project.dataset()
    assert project.run("datasets/demo").status == 0
    assert len(ran(project)) == 9
    assert project.run("--lf", "datasets/demo").status == 0
    assert len(ran(project)) == 9
    assert project.run("--lf", "--lfnf=none", "datasets/demo").status == 5


@both
def test_ff(project, workers):
    project.dataset(tasks=MIXED)
    run(project, workers, "datasets/demo")
    everything = sorted(ran(project))
    listed = project.collect("--ff", "datasets/demo")
    assert listed[:3] == [ids("broken")[1], ids("ours")[3], ids("wrong")[2]]
    run(project, workers, "--ff", "datasets/demo")
    assert sorted(ran(project)) == everything


def test_nf(project):
    """By the age of task.toml among those that are new."""
    dataset = project.dataset(tasks={"b": {}, "c": {}})
    project.run("datasets/demo/tasks")
    project.task(dataset / "tasks/a")
    later = time.time() + 60
    os.utime(dataset / "tasks/a/task.toml", (later, later))
    assert project.collect("--nf", "datasets/demo")[:4] == ids("a")


def test_sw(project):
    project.dataset(tasks=MIXED)
    assert project.run("--sw", "datasets/demo").status == 2
    assert ran(project)[-1] == ids("broken")[1]
    project.run("--sw", "datasets/demo")
    assert ran(project) == [ids("broken")[1]]
    project.run("--sw-skip", "datasets/demo")
    assert ran(project)[0] == ids("broken")[1]
    assert ran(project)[-1] == ids("ours")[3]


def test_cache_clear(project):
    project.dataset(tasks=MIXED)
    project.run("datasets/demo")
    assert len(project.collect("--lf", "datasets/demo")) == 3
    assert len(project.collect("--cache-clear", "--lf", "datasets/demo")) == 21


# --- when to stop ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("option", "failures"), [("-x", 1), ("--maxfail=1", 1), ("--maxfail=2", 2)])
def test_x_and_maxfail(project, option, failures):
    """Errors count; n/a and blocked do not."""
    project.dataset(tasks=MIXED)
    outcome = project.run(option, "datasets/demo")
    assert outcome.status == 1
    answers = [line["verdict"] for line in project.ledger().values()]
    assert sum(verdict in ("fail", "error") for verdict in answers) == failures
    assert answers[-1] in ("fail", "error")


def test_x_does_not_stop_at_blocked(project):
    project.dataset(tasks=MIXED)
    project.run("-x", "datasets/demo", "-m", "oracle")
    assert ran(project) == ids("broken", "good", "none", "ours", "wrong", stages=("oracle",))


def test_x_with_workers(project):
    """Each worker stops by itself, so there may be one failure of each; the status is xdist's."""
    tasks = {f"t{number:02}": {"static": "static-findings bad"} for number in range(40)}
    project.dataset(tasks=tasks)
    outcome = project.process("-n2", "-x", "datasets/demo")
    assert outcome.status == 2
    assert 1 <= outcome.counts["failed"] <= 4
    assert len(ran(project)) < 40


def test_continue_on_collection_errors(project):
    dataset = project.dataset(tasks={"fine": {}})
    project.task(dataset / "tasks/a b")
    assert project.run("datasets/demo").status == 2
    assert ran(project) == []
    outcome = project.run("--continue-on-collection-errors", "datasets/demo")
    assert (outcome.status, outcome.counts) == (1, {"passed": 5, "error": 1})


@both
def test_runxfail(project, workers):
    record = '[otval.known_bad.a]\nreason = "r"\nowner = "o"\nexpires = 2999-01-01\n'
    project.dataset(tasks={"a": {"oracle": "wrong-reward low"}}, otval=record)
    outcome = run(project, workers, "datasets/demo")
    assert (outcome.status, outcome.counts) == (0, {"passed": 4, "xfailed": 1})
    outcome = run(project, workers, "--runxfail", "datasets/demo")
    assert (outcome.status, outcome.counts) == (1, {"passed": 4, "failed": 1})


# --- workers, plugins, configuration ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dist", ["loadscope", "loadfile", "worksteal"])
def test_dist(project, dist):
    project.dataset(tasks=MIXED)
    outcome = project.process("-n2", f"--dist={dist}", "datasets/demo")
    assert outcome.status == 1
    assert sorted(ran(project)) == sorted([OWN, *ids("broken", "good", "none", "ours", "wrong")])


@pytest.mark.parametrize("mode", ["prepend", "append", "importlib"])
def test_import_mode(project, mode):
    task = project.dataset() / "tasks/a"
    (task / "test_x.py").write_text("raise RuntimeError('imported on the host')")
    assert project.run(f"--import-mode={mode}", "datasets/demo").status == 0


@both
def test_w_error(project, workers):
    dataset = project.dataset()
    (dataset / "tasks/forgotten").mkdir()
    assert run(project, workers, "-W", "error", "datasets/demo").status == 0


@pytest.mark.parametrize(
    ("options", "stages"),
    [
        (["--rootdir", "{other}"], STAGES),
        (["-c", "/dev/null"], STAGES),
        (["-c", "{other}/other.ini"], ("noop",)),
    ],
)
@both
def test_rootdir_and_c(project, workers, tmp_path, options, stages):
    """Ids do not depend on them."""
    project.dataset()
    (tmp_path / "other.ini").write_text("[pytest]\naddopts = -m noop\n")
    run(project, workers, *(option.format(other=tmp_path) for option in options), "datasets/demo/tasks/a")
    assert ran(project) == ids("a", stages=stages)


def test_override_ini(project):
    project.dataset()
    options = ["-o", "console_output_style=classic", "-o", "cache_dir=mine", "-o", "junit_family=xunit1"]
    assert project.run(*options, "datasets/demo", "-p", "cacheprovider").status == 0
    assert (project.root / "mine").is_dir()


def test_confcutdir_and_noconftest(project):
    project.dataset()
    project.pytester.makeconftest("raise RuntimeError('loaded')")
    assert project.run("--noconftest", "datasets/demo").status == 0


@pytest.mark.parametrize("option", ["--setup-only", "--setup-plan"])
@both
def test_setup_only(project, option, workers):
    project.dataset()
    refusal = run(project, workers, option, "datasets/demo").refusal
    assert refusal == "--setup-only and --setup-plan show fixtures, and tasks have none: list them by --co"
    assert not project.runs[-1].exists()


def test_setup_show(project):
    project.dataset()
    assert project.run("--setup-show", "datasets/demo").status == 0


def test_pdb(project):
    """Opens in our code, beside an answer that is there already: the container is gone."""
    project.dataset(tasks={"a": {"oracle": "wrong-reward low"}})
    words = [sys.executable, "-P", "-m", "pytest", "-p", "otval_stub", "--pdb", "datasets/demo"]
    variables = {**os.environ, "PYTHONPATH": str(STUB.parent)}
    done = subprocess.run(words, input="q\n", env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "(Pdb)" in done.stdout
    assert "wrong-reward: low" in done.stdout
    refused = subprocess.run([*words, "-n2"], env=variables, capture_output=True, text=True, check=False)
    assert refused.returncode == 4


# --- what is shown ---------------------------------------------------------------------------------------------------


def test_v(project):
    project.dataset(tasks=MIXED)
    lines = project.run("-v", "datasets/demo").lines
    for nodeid, word in [
        (ids("good")[0], "PASSED"),
        (ids("wrong")[2], "FAILED"),
        (ids("ours")[3], "ERROR"),
        (ids("broken")[2], "BLOCKED"),
        (ids("none")[2], "N/A"),
    ]:
        assert any(line.startswith(f"{nodeid} {word}") for line in lines), nodeid


def test_q(project):
    project.dataset(tasks=MIXED)
    lines = project.run("-q", "datasets/demo").lines
    letters = "".join(re.findall(r"^[.FEBn]+(?= |$)", "\n".join(lines), re.MULTILINE))
    assert "..FBB" in letters
    assert set(letters) == set(".FEBn")


def test_r(project):
    project.dataset(tasks=MIXED)
    lines = project.run("-rA", "datasets/demo").lines
    assert any(line.startswith(f"FAILED {ids('wrong')[2]} - ") for line in lines)
    assert any(line.startswith(f"ERROR {ids('ours')[3]} - ") for line in lines)
    assert f"PASSED {ids('good')[0]}" in lines


@pytest.mark.parametrize("style", ["auto", "long", "short", "line", "native", "no"])
def test_tb(project, style):
    """The text of an answer is the same in each style; there are no Python frames in it."""
    project.dataset(tasks=MIXED)
    text = "\n".join(project.run(f"--tb={style}", "datasets/demo/tasks/wrong").lines)
    assert ("wrong-reward: too low" in text.partition("short test summary")[0]) == (style != "no")
    assert "Traceback" not in text


def test_durations(project):
    project.dataset()
    lines = project.run("--durations=3", "--durations-min=0", "-vv", "datasets/demo").lines
    shown = [line for line in lines if re.match(r"\d+\.\d\ds (setup|call|teardown) +datasets/demo", line)]
    assert len(shown) == 3


@both
def test_junitxml(project, workers):
    project.dataset(tasks=MIXED)
    run(project, workers, "--junitxml=out.xml", "datasets/demo")
    cases = {
        (case.get("classname"), case.get("name")): {child.tag for child in case} - {"properties"}
        for case in ElementTree.parse("out.xml").iter("testcase")
    }
    assert len(cases) == 21
    assert cases["datasets.demo.tasks.wrong.task.toml", "oracle"] == {"failure"}
    assert cases["datasets.demo.tasks.ours.task.toml", "noop"] == {"error"}
    assert cases["datasets.demo.tasks.broken.task.toml", "noop"] == {"skipped"}
    assert cases["datasets.demo.tasks.good.task.toml", "noop"] == set()


def test_html(project):
    project.dataset(tasks=MIXED)
    project.run("--html=out.html", "--self-contained-html", "datasets/demo")
    page = (project.root / "out.html").read_text()
    assert all(nodeid in page for nodeid in ids("good", "wrong"))


@pytest.mark.parametrize("option", ["-s", "--capture=fd", "--capture=sys", "--capture=tee-sys", "--show-capture=no"])
def test_capture(project, option):
    project.dataset(tasks=MIXED)
    assert project.run(option, "datasets/demo").status == 1
    assert len(ran(project)) == 21


@pytest.mark.parametrize(
    "option",
    ["--no-header", "--no-summary", "--color=yes", "--disable-warnings", "--full-trace", "-l", "--log-cli-level=DEBUG"],
)
def test_other_flags_of_the_display(project, option):
    project.dataset(tasks=MIXED)
    assert project.run(option, "datasets/demo").status == 1
    assert len(ran(project)) == 21


def test_doctest_modules(project):
    task = project.dataset() / "tasks/a"
    (task / "module.py").write_text("raise RuntimeError('imported on the host')")
    (task / "test.txt").write_text(">>> 1 / 0\n")
    assert project.run("--doctest-modules", "--doctest-glob=*.txt", "datasets/demo").counts == {"passed": 9}


def test_basetemp(project, tmp_path):
    project.dataset()
    assert project.run(f"--basetemp={tmp_path / 'base'}", "datasets/demo").status == 0


# --- the table -------------------------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "pytest.md"


def test_each_row_of_the_table_names_a_test():
    flags = PAGE.read_text().partition("\n## Flags\n")[2].partition("\n## ")[0]
    rows = [line for line in flags.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 40
    for row in rows:
        named = re.findall(r"`([a-z_]+(?:\.py)?::)?(test_\w+)`", row.split("|")[-2])
        assert named, row
        for file, test in named:
            source = Path(__file__).with_name(file.removesuffix("::") or Path(__file__).name).read_text()
            assert f"def {test}(" in source, row
