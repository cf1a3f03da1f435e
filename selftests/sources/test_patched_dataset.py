"""A whole small dataset: source, patches, Parquet, and what its patch.py tells."""

import errno
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from pytest_otval.sources import dataset as dataset_module
from pytest_otval.sources import making, parts, prepare_command
from pytest_otval.sources.adapters.base import Refused
from pytest_otval.sources.dataset import PatchedDataset
from pytest_otval.sources.dockerfiles import DOCKERFILE
from pytest_otval.sources.patches import Patch
from pytest_otval.task.dataset import load_dataset
from pytest_otval.task.digest import task_digest
from pytest_otval.task.source import source_of
from pytest_otval.workspace import Workspace
from selftests.checks.conftest import write_task
from selftests.sources.test_patches import patch

TOML = '[dataset]\nname = "org/small"\n[otval.source]\n{source}\n'


@pytest.fixture
def small(tmp_path):
    """Return what makes the dataset over three tasks, two of which are to be repaired."""
    (tmp_path / "ws").mkdir()
    folder = tmp_path / "datasets" / "small"
    folder.mkdir(parents=True)
    (folder / "patch.py").write_text("# none\n")
    for name, text in (("a", "wrong"), ("b", "fine"), ("c", "wrong")):
        write_task(tmp_path / "origin" / "tasks" / name, {"notes.txt": f"{text}\n"})

    def make(patches=(), source=f'kind = "local"\npath = "{tmp_path}/origin"'):
        (folder / "dataset.toml").write_text(TOML.format(source=source))
        return PatchedDataset(str(folder / "patch.py"), patches, Workspace(tmp_path / "ws"))

    make.root = tmp_path
    make.target = tmp_path / "ws" / "datasets" / "small"
    return make


def said(capsys, dataset, *words):
    capsys.readouterr()
    status = dataset.main(list(words))
    out, err = capsys.readouterr()
    return status, out.splitlines(), err.splitlines()


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def notes(target, tmp_path):
    source = source_of(target)
    return {
        name: (source.folder(name, tmp_path / "out") / "notes.txt").read_text().strip() for name in source.names()[0]
    }


def test_from_source_to_tasks(small, capsys, tmp_path):
    dataset = small([patch()])
    assert said(capsys, dataset, "status")[1] == ["source: fetched", f"tasks: not prepared in {small.target}"]
    status, out, _ = said(capsys, dataset, "prepare")
    assert (status, out) == (0, ["spelling (spelling): 2 tasks", "small: 3 tasks, 0 refused, 0 errors"])
    assert notes(small.target, tmp_path) == {"a": "right", "b": "fine", "c": "right"}
    head, *lines = map(json.loads, (small.target / "provenance.jsonl").read_text().splitlines())
    assert (head["tasks"], head["applied"], head["faults"]) == (3, {"spelling": 2}, {"spelling": "spelling"})
    assert [(line["name"], line["record"], line.get("patches")) for line in lines] == [
        ("a", "a", ["spelling"]),
        ("b", "b", None),
        ("c", "c", ["spelling"]),
    ]
    assert [line["source"] == line["digest"] for line in lines] == [False, True, False]
    folder = source_of(small.target).folder("a", tmp_path / "again")
    assert lines[0]["digest"] == task_digest(folder)
    assert lines[0]["source"] == task_digest(small.root / "origin" / "tasks" / "a")
    assert said(capsys, dataset, "status")[1][1] == f"tasks: prepared in {small.target}"


def test_made_again_it_is_the_same_bytes_and_no_part_is_made_twice(small, capsys, monkeypatch):
    dataset = small([patch()])
    said(capsys, dataset, "prepare")
    before = content(small.target)
    monkeypatch.setattr(prepare_command, "make", None)
    status, _, err = said(capsys, dataset, "prepare")
    assert (status, err) == (0, ["small: 0 of 1 parts were made anew"])
    assert content(small.target) == before


def test_made_elsewhere_it_is_the_same_bytes(small, capsys, tmp_path):
    said(capsys, small([patch()]), "prepare")
    before = content(small.target)
    other = small([patch()])
    other._workspace = Workspace(tmp_path / "other")
    (tmp_path / "other").mkdir()
    said(capsys, other, "prepare")
    assert content(tmp_path / "other" / "datasets" / "small") == before


@pytest.fixture
def a_part_a_task(monkeypatch):
    monkeypatch.setattr(parts, "MIN_TASKS", 1)
    monkeypatch.setattr(parts, "MEAN_REST", 1)


@pytest.mark.usefixtures("a_part_a_task")
def test_after_an_interruption_what_was_made_is_taken(small, capsys, monkeypatch):
    dataset = small([patch()])
    real = making._Ready.put

    def killed(part, folder, number):
        if number == 2:
            raise KeyboardInterrupt
        return real(part, folder, number)

    monkeypatch.setattr(making._Ready, "put", killed)
    kept = "error: interrupted: 2 made parts are kept, prepare goes on with them"
    assert said(capsys, dataset, "prepare") == (1, [], [kept])
    assert not small.target.exists()
    monkeypatch.setattr(making._Ready, "put", real)
    status, _, err = said(capsys, dataset, "prepare")
    assert (status, err) == (0, ["small: 1 of 3 parts were made anew"])
    monkeypatch.setattr(making._Ready, "put", killed)
    (small.root / "origin" / "tasks" / "b" / "notes.txt").write_text("wrong\n")
    before = content(small.target)
    assert said(capsys, dataset, "prepare")[2] == [f"{kept}; what was prepared before is as it was"]
    assert content(small.target) == before


@pytest.mark.usefixtures("a_part_a_task")
def test_only_parts_in_which_something_changed_are_made_anew(small, capsys, tmp_path):
    dataset = small([patch()])
    said(capsys, dataset, "prepare")
    write_task(tmp_path / "origin" / "tasks" / "aa", {"notes.txt": "wrong\n"})
    assert said(capsys, dataset, "prepare")[2] == ["small: 1 of 4 parts were made anew"]
    assert sorted(notes(small.target, tmp_path)) == ["a", "aa", "b", "c"]
    assert [name for name in os.listdir(small.target.parent) if name[0] == "."] == []


def test_a_damaged_part_is_made_anew(small, capsys):
    dataset = small([patch()])
    said(capsys, dataset, "prepare")
    before = content(small.target)
    (part,) = (small.target / "data").iterdir()
    part.write_bytes(before[f"data/{part.name}"][:-10])
    (small.target / "provenance.jsonl").write_text("")
    assert said(capsys, dataset, "prepare")[0] == 0
    assert content(small.target) == before


def test_other_settings_are_seen_and_make_no_task_anew(small, capsys, monkeypatch):
    dataset = small([patch()])
    said(capsys, dataset, "prepare")
    monkeypatch.setattr(prepare_command, "make", None)
    with (dataset.folder / "dataset.toml").open("a") as file:
        file.write("[otval]\nnoop_max = 0.25\n")
    assert said(capsys, dataset, "prepare")[0] == 0
    assert load_dataset(small.target).settings.noop_max == 0.25


def test_images_are_replaced_as_dataset_toml_says(small, capsys, tmp_path):
    dataset = small()
    with (dataset.folder / "dataset.toml").open("a") as file:
        file.write('[otval.images]\n"debian:bookworm-slim" = "mirror.example/debian@sha256:00"\n')
    assert said(capsys, dataset, "prepare")[1][0] == "image-map (image): 3 tasks"
    task = source_of(small.target).folder("a", tmp_path / "out")
    assert "FROM mirror.example/debian@sha256:00\n" in (task / "environment" / "Dockerfile").read_text()
    assert 'image-map = "image"' in (task / "task.toml").read_text()
    assert not load_dataset(small.target).findings
    before = content(small.target)
    text = (dataset.folder / "dataset.toml").read_text()
    (dataset.folder / "dataset.toml").write_text(text.replace("sha256:00", "sha256:01"))
    said(capsys, dataset, "prepare")
    assert content(small.target).keys() != before.keys()
    (dataset.folder / "dataset.toml").write_text(text.replace("bookworm", "trixie"))
    assert "error: image-map: no task needs it" in said(capsys, dataset, "prepare")[1][-2]


def test_two_at_once_do_not_make_the_same_dataset(small, capsys):
    dataset = small([patch()])
    with making.preparing(small.target):
        (said_so,) = said(capsys, dataset, "prepare")[2]
    assert said_so == "error: another process prepares small now: wait for it, or end it"


def test_a_full_disk_is_told_in_one_line(small, capsys, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/place/part")

    monkeypatch.setattr(making, "_sync", full)
    status, _, err = said(capsys, small([patch()]), "prepare")
    assert (status, err) == (1, ["error: /place/part: No space left on device: nothing is kept"])


def test_another_patch_makes_all_anew(small, capsys):
    said(capsys, small([patch()]), "prepare")
    before = content(small.target)
    dataset = small([patch(new="good")])
    (dataset.folder / "patch.py").write_text("# another\n")
    said(capsys, dataset, "prepare")
    assert content(small.target).keys() != before.keys()


def test_as_folders(small, capsys):
    assert said(capsys, small([patch()]), "prepare", "--folders")[0] == 0
    assert (small.target / "tasks" / "a" / "notes.txt").read_text() == "right\n"
    assert (small.target / "tasks" / "a" / "tests" / "test.sh").stat().st_mode & 0o111


def test_a_patch_of_no_use_is_an_error(small, capsys):
    status, out, _ = said(capsys, small([patch(), patch("other", old="absent")]), "prepare")
    assert status == 1
    assert "error: other: no task needs it: the source was repaired, or the patch was never right; remove it" in out
    assert said(capsys, small([patch(), patch("other", old="absent")]), "check")[0] == 1
    assert said(capsys, small([patch()]), "check") == (0, ["small: 3 tasks looked at, 1 patches, 0 errors"], [])


def test_the_diff_shows_what_patches_change(small, capsys):
    status, out, _ = said(capsys, small([patch()]), "diff", "a")
    assert status == 0
    assert [
        line for line in out if line.startswith(("-", "+")) and "notes" not in line and "task.toml" not in line
    ] == [
        "-wrong",
        "+right",
        "+",
        "+[metadata.otval.patches]",
        '+spelling = "spelling"',
    ]
    assert said(capsys, small([patch()]), "diff", "b")[1] == []
    assert said(capsys, small([patch()]), "diff", "nothing")[2] == ["error: the source has no task 'nothing'"]


def test_tasks_that_are_chosen(small, capsys, tmp_path):
    dataset = small([patch("other", old="absent"), patch()])
    status, out, _ = said(capsys, dataset, "prepare", "--only", "c", "a", "--limit", "1")
    assert (status, out[-1]) == (0, "small: 1 tasks, 0 refused, 0 errors")
    assert notes(small.target, tmp_path) == {"a": "right"}
    status, _, err = said(capsys, dataset, "prepare", "--only", "b", "z\x1b")
    assert (status, err) == (4, ["error: the source has no task 'z\\\\x1b'"])
    assert notes(small.target, tmp_path) == {"a": "right"}
    assert said(capsys, dataset, "check", "--only", "b")[0] == 0
    assert said(capsys, dataset, "check", "--limit", "-1") == (
        4,
        [],
        ["error: --limit is a number of tasks, 0 or more"],
    )


def test_runtimes_that_the_dataset_named_stay_named(small, capsys):
    dataset = small()
    said(capsys, dataset, "prepare")
    line = f'tools-{"1" * 12} = "sha256:{"a" * 64}"'
    (small.target / "dataset.toml").write_text(f"[dataset]\n[otval.runtimes]\n{line}\n")
    assert said(capsys, dataset, "prepare")[0] == 0
    now = (small.target / "dataset.toml").read_text()
    assert 'name = "org/small"' in now and line in now
    with (dataset.folder / "dataset.toml").open("a") as file:
        file.write("[otval]\nruntimes = 1\n")
    assert "cannot take a table [otval.runtimes]" in said(capsys, dataset, "prepare")[2][0]
    assert (small.target / "dataset.toml").read_text() == now


def test_records_that_give_no_task_are_told_with_their_reason(small, capsys, monkeypatch):
    dataset = small()
    tasks = list(dataset.tasks_of_source())

    class Bad:
        name = "bad name"

    found = [Refused("row 7", "cut-ids", "ids end at a blank"), tasks[0], Bad(), *tasks[1:]]
    monkeypatch.setattr(dataset_module, "harbor_tasks", lambda path: found)
    status, out, _ = said(capsys, dataset, "prepare")
    assert status == 0
    assert out[:4] == [
        "refused, cut-ids: 1",
        "refused, bad-name: 1",
        "  row 7: ids end at a blank",
        "  bad name: its name cannot stand in a node id",
    ]


def test_two_tasks_of_one_name_are_refused(small, capsys, monkeypatch):
    dataset = small()
    tasks = list(dataset.tasks_of_source())
    monkeypatch.setattr(dataset_module, "harbor_tasks", lambda path: [tasks[0], *tasks])
    assert said(capsys, dataset, "prepare")[0] == 1


def test_a_task_that_a_patch_cannot_change_is_told(small, capsys):
    def fails(task):
        task.replace("notes.txt", "absent", "x")

    broken = Patch("broken", "f", fails, lambda task: "wrong" in task.text("notes.txt"))
    status, out, _ = said(capsys, small([broken]), "prepare")
    assert status == 1
    assert "error: a: broken: notes.txt: 'absent' stands there 0 times, not 1: the source changed" in out


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "otval.source: Unable to extract tag"),
        ('kind = "ftp"', "otval.source: Input tag 'ftp'"),
        ('kind = "git"\nurl = "x"\ncommit = "main"', "otval.source.git.commit: String should match pattern"),
        ('kind = "local"\npath = "/x"\nmore = 1', "otval.source.local.more: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_source_is_told_in_one_line(small, capsys, source, words):
    status, _, err = said(capsys, small(source=source), "prepare")
    assert status == 4 and len(err) == 1 and words in err[0]


def test_a_commit_of_a_repository(small, capsys, tmp_path):
    origin = tmp_path / "origin"
    git = ["git", "-C", str(origin), "-c", "user.name=x", "-c", "user.email=x@x"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    (origin / "tasks" / "b" / "notes.txt").write_text("later\n")
    subprocess.run([*git, "commit", "-qam", "two"], check=True)
    dataset = small(source=f'kind = "git"\nurl = "file://{origin}"\ncommit = "{commit}"\nlicence = "MIT"')
    assert said(capsys, dataset, "prepare")[2] == ["error: the source of small is not fetched: patch.py fetch"]
    assert said(capsys, dataset, "fetch") == (0, ["small: fetched"], [])
    assert said(capsys, dataset, "fetch") == (0, ["small: is fetched"], [])
    assert said(capsys, dataset, "prepare")[0] == 0
    assert notes(small.target, tmp_path)["b"] == "fine"
    (kept,) = (small.root / "ws" / "datasets" / ".sources" / "small").iterdir()
    assert not (kept / "data" / ".git").exists()
    (kept / "data" / "tasks" / "a" / "notes.txt").write_text("touched")
    assert "was changed since it was fetched" in said(capsys, dataset, "prepare")[2][0]


def test_a_commit_that_is_not_there_leaves_nothing(small, capsys):
    dataset = small(source=f'kind = "git"\nurl = "file:///nowhere"\ncommit = "{"0" * 40}"')
    status, _, err = said(capsys, dataset, "fetch")
    assert status == 1 and len(err) == 1 and "file:///nowhere at 000000000000" in err[0]
    assert list((small.root / "ws" / "datasets" / ".sources" / "small").iterdir()) == []


def test_files_of_the_hub(small, capsys, any_hub, tmp_path):
    said(capsys, small(), "prepare")
    (part,) = (small.target / "data").glob("*.parquet")
    repository = any_hub.add("datasets/org/set", {"data/part.parquet": part.read_bytes()})
    revision = repository.sha()
    source = f'kind = "huggingface"\nrepository = "org/set"\nrevision = "{revision}"\nfiles = ["data/part.parquet"]'
    digest = hashlib.sha256(part.read_bytes()).hexdigest()
    dataset = small(source=f'{source}\nsha256 = ["{digest}"]')
    assert said(capsys, dataset, "fetch") == (0, ["small: fetched"], [])
    assert said(capsys, dataset, "prepare")[0] == 0
    assert notes(small.target, tmp_path) == {"a": "wrong", "b": "fine", "c": "wrong"}
    other = small(source=f'{source}\nsha256 = ["{"0" * 64}"]')
    assert "does not match its checksum" in said(capsys, other, "fetch")[2][0]


def test_files_of_the_hub_by_a_pattern(small, capsys, any_hub, tmp_path):
    said(capsys, small(), "prepare")
    (part,) = (small.target / "data").glob("*.parquet")
    files = {"data/train-0.parquet": part.read_bytes(), "data/other.txt": b"no tasks", "README.md": b"x"}
    repository = any_hub.add("datasets/org/set", files)
    source = f'kind = "huggingface"\nrepository = "org/set"\nrevision = "{repository.sha()}"\nfiles = ["data/{{}}"]'
    dataset = small(source=source.format("train-*.parquet"))
    assert said(capsys, dataset, "fetch") == (0, ["small: fetched"], [])
    (kept,) = (small.root / "ws" / "datasets" / ".sources" / "small").iterdir()
    assert [path.name for path in (kept / "data" / "data").iterdir()] == ["train-0.parquet"]
    assert said(capsys, small(source=source.format("test-*")), "fetch")[2] == [
        f"error: org/set has no file data/test-* at {repository.sha()[:12]}"
    ]


def test_a_dataset_of_the_hub_without_a_revision_is_not_fetched(small, capsys):
    dataset = small(source='kind = "huggingface"\nrepository = "org/set"\nfiles = ["data/*.parquet"]')
    assert said(capsys, dataset, "status")[1][0] == "source: not fetched"
    assert said(capsys, dataset, "fetch")[2] == [
        "error: no revision is pinned: write `revision` into [otval.source], "
        "a commit of https://huggingface.co/datasets/org/set/commits/main"
    ]


def test_links_of_a_packed_task_stay_links(small, capsys):
    os.symlink("/etc/passwd", small.root / "origin" / "tasks" / "a" / "link")
    said(capsys, small(), "prepare", "--folders")
    assert os.readlink(small.target / "tasks" / "a" / "link") == "/etc/passwd"


def test_what_a_patch_reads_is_part_of_the_recipe(small):
    idle = Patch("p", "f", lambda task: None, lambda task: False)
    recipes = {small([replace(idle, inputs=lambda text=text: text)]).recipe for text in "ab"}
    assert len(recipes) == 2


def test_a_process_of_its_own_makes_tasks_with_patches_that_parse_dockerfiles(small, tmp_path):
    """BuildKit's parser is Go's: a child of a process that has loaded it may hang, so none may have when it forks."""
    script = small([]).folder / "patch.py"
    script.write_text(
        "import sys\n"
        "from pytest_otval.sources.dataset import PatchedDataset\n"
        "from pytest_otval.sources.library import package_lists\n"
        "assert 'dockerfile' not in sys.modules\n"
        "raise SystemExit(PatchedDataset(__file__, [package_lists()]).main())\n"
    )
    for name in ("a", "b"):
        write_task(tmp_path / "origin/tasks" / name, {DOCKERFILE: "FROM debian:12\nRUN apt-get install -y git\n"})
    done = subprocess.run(
        [sys.executable, script, "prepare"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OT_WORKSPACE": str(tmp_path / "ws")},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "package-lists (docker-apt-no-lists): 2 tasks"


def test_a_process_that_has_loaded_it_makes_them_alone(small, capsys, monkeypatch):
    monkeypatch.setattr(making, "may_fork", lambda: False)
    monkeypatch.setattr(making, "ProcessPoolExecutor", None)
    assert said(capsys, small([patch()]), "prepare")[0] == 0
