"""``python -m pytest_otval image``: what needs the store's files alone, and what needs plans, over a fake sandbox."""

import json
import os
import time
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pytest_otval.__main__ import main
from pytest_otval.cluster import image_plans, image_store
from pytest_otval.cluster.image_store import quota_lines
from pytest_otval.cluster.shown import size_text
from pytest_otval.images.bases import chosen_sources
from pytest_otval.images.inventory import Use, keys_of
from pytest_otval.images.model import ImageConfig
from pytest_otval.images.record import image_path, record_path, write_record
from pytest_otval.images.store import Images
from pytest_otval.profile import ImageNames, Profile, QuotaSection, Recipe, SetupSection
from selftests.fakes import FakeSandbox
from selftests.images.store_of_images import add_image, key_of, packed

HOSTILE = "\x1b[31m\u202egnp.exe\n"


@pytest.fixture
def profile():
    return Profile(
        name="local",
        image_sources=("bootstrap",),
        images=(ImageNames(names=("debian:12",), recipe="bookworm"),),
        recipes={"bookworm": Recipe(suite="bookworm")},
        setup=SetupSection(prepare=("toolbox", "image:bootstrap:bookworm")),
        quota=QuotaSection(files=4, gb=1),
    )


@pytest.fixture
def workspace(tmp_path, profile, monkeypatch):
    """A workspace whose store is empty, and a profile with one recipe; nothing is asked of any network."""
    root = tmp_path / "workspace"
    (root / "images").mkdir(parents=True)
    (root / "datasets").mkdir()
    monkeypatch.setenv("OT_WORKSPACE", str(root))
    monkeypatch.chdir(tmp_path)
    for module in (image_plans, image_store):
        monkeypatch.setattr(module, "load_profile", lambda name: profile)
    monkeypatch.setattr(image_plans, "probe_flavour", lambda workspace, profile: ("fakeroot-subuid", []))

    @contextmanager
    def opened_machine(workspace, profile, flavour, offline=False, extensions=None):
        sources = None
        if extensions is not None:
            given = extensions.image_sources(profile, workspace.images, offline)
            sources = chosen_sources(profile, given)
        maps_uids = image_plans.FLAVOURS[flavour].maps_uids
        sandbox = FakeSandbox(maps_uids=maps_uids)
        sources = sources or [image_plans.own_extensions().image_sources(profile, workspace.images, True)["bootstrap"]]
        yield SimpleNamespace(
            images=Images(workspace.images, sandbox, profile, tmp_path, tmp_path / "run", sources=sources)
        )

    monkeypatch.setattr(image_plans, "opened_machine", opened_machine)
    return root


@pytest.fixture
def store(workspace):
    return workspace / "images"


def make_task(workspace, name, dockerfile="FROM debian:12\nRUN true\n", toml=""):
    folder = workspace / "datasets" / "set" / "tasks" / name
    (folder / "environment").mkdir(parents=True)
    (folder / "environment" / "Dockerfile").write_text(dockerfile)
    (folder / "task.toml").write_text(toml)
    return folder


def say(capsys, *words, status=0):
    assert main(["image", *map(str, words)]) == status
    return capsys.readouterr().out


def refusal(capsys, *words, status):
    assert main(["image", *map(str, words)]) == status
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize(
    "action", ["list", "show", "verify", "gc", "plan", "pull", "export", "import", "diff", "prepare"]
)
def test_help_of_each_action(action, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["image", action, "--help"])
    assert caught.value.code == 0
    assert action in capsys.readouterr().out


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (94_412_800, "94.4 MB"), (2e15, "2000.0 TB")]
)
def test_sizes(count, text):
    assert size_text(count) == text


def test_quota():
    quota = QuotaSection(files=100, gb=2)
    assert quota_lines(Use(80, 10**9), quota) == [
        (False, "80 of 100 files of [quota], 80 %"),
        (False, "1 of 2 GB of [quota], 50 %"),
    ]
    assert [is_much for is_much, _ in quota_lines(Use(81, 19 * 10**8), quota)] == [True, True]
    assert quota_lines(Use(81, 1), QuotaSection()) == []


def test_list(store, capsys):
    below = add_image(store, 1, b"x" * 2000, packages={"dpkg": {"a": "1", "b": "1"}, "pip": {"c": "1"}})
    add_image(store, 2, base=HOSTILE, below=(below.key,))
    text = say(capsys, "list")
    assert f"{below.key[:12]}     2.0 kB      0         3  bootstrap:x@1" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "2 images, 2.0 kB; the store has 4 files" in text
    assert "warning: 4 of 4 files of [quota], 100 %" in text
    values = json.loads(say(capsys, "list", "--json"))
    assert {image["key"]: image["packages"] for image in values["images"]}[below.key] == {"dpkg": 2, "pip": 1}
    assert values["files"] == 4
    assert values["quota"] == {"files": 4, "gb": 1.0}


def test_show(store, capsys):
    config = ImageConfig(env={"A": HOSTILE}, user="app", cmd=("a", "b"))
    record = add_image(store, 1, config=config, log=f"one\n{HOSTILE}two", packages={"dpkg": {"bash": "5"}})
    text = say(capsys, "show", record.key[:8])
    for line in (
        f"key           {record.key}",
        "user          app",
        'cmd           ["a", "b"]',
        "dpkg          bash 5",
    ):
        assert line in text.splitlines()
    assert "one" not in text
    assert "\x1b" not in text
    assert say(capsys, "show", record.key, "--log").splitlines()[0] == "one"
    assert "log" not in json.loads(say(capsys, "show", record.key, "--json"))
    assert json.loads(say(capsys, "show", record.key, "--json", "--log"))["log"] == record.log


@pytest.mark.parametrize("key", ["ffff", "", "../x", "*", HOSTILE])
def test_unknown_key(store, capsys, key):
    add_image(store, 1)
    refusal(capsys, "show", key, status=1)


def test_verify_and_remove(store, capsys):
    below = add_image(store, 1)
    above, other = add_image(store, 2, below=(below.key,)), add_image(store, 3)
    assert say(capsys, "verify") == ""
    image_path(store, below.key).write_bytes(b"PACKED")
    assert len(say(capsys, "verify", status=1).splitlines()) == 2
    assert say(capsys, "verify", other.key[:9]) == ""
    assert f"{above.key[:12]}: below it, {below.key[:12]}" in say(capsys, "verify", "--remove", status=1)
    assert keys_of(store) == [other.key]


def test_export_and_import(workspace, store, tmp_path, capsys, monkeypatch):
    record = add_image(store, 1)
    say(capsys, "export", record.key[:12], "--bundle", tmp_path / "bundle")
    refusal(capsys, "export", record.key, "--bundle", tmp_path / "bundle", status=4)
    record_path(store, record.key).unlink()
    assert "new" in say(capsys, "import", tmp_path / "bundle")
    assert "was here" in say(capsys, "import", tmp_path / "bundle")
    refusal(capsys, "import", tmp_path / "none", status=4)


def test_import_of_a_file_says_what_to_write(store, tmp_path, capsys):
    (tmp_path / "root").mkdir()
    (tmp_path / "a.sqfs").write_bytes(packed(tmp_path / "root"))
    (line,) = say(capsys, "import", tmp_path / "a.sqfs").splitlines()
    assert line.endswith(f'docker_image = "{image_path(store, keys_of(store)[0])}"')


def test_sif_holds_one_image_that_is_right(store, tmp_path, capsys):
    keys = [add_image(store, number).key for number in (1, 2)]
    assert "holds one image" in refusal(capsys, "export", *keys, "--sif", tmp_path / "x.sif", status=4)
    image_path(store, keys[0]).write_bytes(b"PACKED")
    assert "another content" in refusal(capsys, "export", keys[0], "--sif", tmp_path / "x.sif", status=1)


def test_diff(store, tmp_path, capsys):
    contents = []
    for number in (1, 2):
        root = tmp_path / f"root-{number}"
        root.mkdir()
        (root / f"file{HOSTILE.strip()}").write_text(str(number))
        contents.append(packed(root))
    first = add_image(store, 1, contents[0], packages={"pip": {"x": "1"}})
    second = add_image(store, 2, contents[1], packages={"pip": {"x": "2"}})
    text = say(capsys, "diff", first.key, second.key)
    assert "~ pip/x  1 -> 2\n" in text
    assert "files: 0 added, 0 removed, 1 changed" in text
    assert "\x1b" not in text
    values = json.loads(say(capsys, "diff", first.key, second.key, "--json"))
    assert [len(values[part]) for part in ("record", "packages", "files")] == [0, 1, 1]


def test_plan(workspace, store, capsys):
    one = make_task(workspace, "one")
    make_task(workspace, "same")
    make_task(workspace, "bad", "FROM debian:12\nCOPY none /\n")
    make_task(workspace, HOSTILE.strip(), "FROM nowhere.example.org/x\n")
    text = say(capsys, "plan", workspace / "datasets")
    assert "\x1b" not in text
    values = json.loads(say(capsys, "plan", workspace / "datasets", "--json"))
    rows = {row["name"].rpartition("/")[2]: row for row in values["environments"]}
    key = rows["one"]["images"][0]["key"]
    assert rows["same"]["images"] == rows["one"]["images"] == [{"key": key, "in_store": False}]
    assert rows["bad"]["class"] == "build-failed"
    assert values["counts"] == {
        "environments": 4, "without_image": 0, "planned": 2, "planned_percent": 50.0, "images": 1, "in_store": 0,
        "to_build": 1, "refusals": [
            {"class": "base-unavailable", "instruction": "FROM", "count": 1},
            {"class": "build-failed", "instruction": "COPY", "count": 1},
        ],
    }  # fmt: skip
    write_record(store, replace(add_image(store, 1), key=key))
    image_path(store, key).write_bytes(b"")
    assert f"{one}: {key[:12]} in store\n" in say(capsys, "plan", one)


def test_plan_without_asking_anybody(workspace, capsys):
    make_task(workspace, "one", "FROM nowhere.example.org/x\n")
    make_task(workspace, "two", "FROM nowhere.example.org/x\n")
    make_task(workspace, "bad", "FROM {{x}}\n")
    counts = json.loads(say(capsys, "plan", workspace / "datasets", "--dry-run", "--json"))["counts"]
    assert (counts["planned"], counts["images"]) == (2, 1)


@pytest.fixture
def built(workspace, store):
    """Images of a task and of the recipe that set-up prepares, and one of nobody, all three days old."""
    task = make_task(workspace, "one")
    keys = set()
    with image_plans.opened_machine(
        SimpleNamespace(images=store), image_plans.load_profile(""), "fakeroot-subuid"
    ) as machine:
        (environment,) = image_plans.environments_below([task], store)
        keys = machine.images.keys(environment.requests()[0])
    template = add_image(store, 1)
    for key in keys:
        write_record(store, replace(template, key=key))
        image_path(store, key).write_bytes(b"packed")
    for path in store.iterdir():
        os.utime(path, (time.time() - 3 * 86400,) * 2)
    assert len(keys) == 2, "the task's own and the base"
    return task, keys


def test_gc_removes_what_no_task_reaches(built, store, capsys):
    keys = built[1]
    assert "1 images" in say(capsys, "gc", "--dry-run")
    assert set(keys_of(store)) == {*keys, key_of(1)}
    assert f"{key_of(1)[:12]}" in say(capsys, "gc")
    assert set(keys_of(store)) == keys
    assert "0 images, 0 B: removed; 2 stay" in say(capsys, "gc")


def test_gc_keeps_what_is_young_and_what_setup_prepares(built, store, capsys):
    task, keys = built
    assert "0 images" in say(capsys, "gc", "--keep-days", "4")
    (task / "environment" / "Dockerfile").write_text("FROM debian:12\nRUN false\n")
    say(capsys, "gc")
    (left,) = keys_of(store)
    assert left in keys


def test_gc_looks_at_the_datasets_here_as_well(built, store, tmp_path, workspace, capsys):
    (workspace / "datasets").rename(tmp_path / "datasets")
    (workspace / "datasets").mkdir()
    say(capsys, "gc")
    assert set(keys_of(store)) == built[1]


def test_gc_without_tasks_removes_nothing(store, tmp_path, capsys):
    add_image(store, 1)
    assert "no task below" in refusal(capsys, "gc", "--keep-days", "0", status=4)
    assert keys_of(store) == [key_of(1)]


def test_gc_stops_where_a_base_is_unknown_now(built, workspace, store, capsys):
    make_task(workspace, "two", "FROM nowhere.example.org/x\n")
    assert "1 of 2 tasks" in refusal(capsys, "gc", status=1)
    assert len(keys_of(store)) == 3
    assert "cannot be planned: 1 base-unavailable" in say(capsys, "gc", "--force")
    assert set(keys_of(store)) == built[1]


def test_gc_takes_a_task_that_cannot_be_built_for_one_that_needs_nothing(built, workspace, store, capsys):
    make_task(workspace, "two", "FROM debian:12\nCOPY none /\n")
    assert "cannot be planned: 1 build-failed" in say(capsys, "gc")


def test_gc_knows_images_made_without_uids_and_those_of_forced_builds(built, workspace, store, capsys):
    task = make_task(workspace, "three", "FROM debian:12\nRUN three\n", '[environment]\ndocker_image = "debian:12"\n')
    with image_plans.opened_machine(SimpleNamespace(images=store), image_plans.load_profile(""), "userns") as machine:
        (environment,) = image_plans.environments_below([task], store)
        key = machine.images.plan(environment.requests_of_any_run()[1]).key
    write_record(store, replace(add_image(store, 1), key=key, all_root=True))
    image_path(store, key).write_bytes(b"packed")
    say(capsys, "gc", "--keep-days", "0")
    assert set(keys_of(store)) == {key, *built[1]}


def test_pull_goes_on_after_a_name_that_cannot_be_had(workspace, store, capsys, monkeypatch):
    def bootstrap(recipe, target, all_root):
        target.write_bytes(b"base")

    monkeypatch.setattr("pytest_otval.images.making.bootstrap", bootstrap)
    monkeypatch.setattr("pytest_otval.images.making.installed", lambda work: {})
    text = say(capsys, "pull", "nowhere.example.org/x", "debian:12", status=1)
    assert "bootstrap:bookworm@" in text
    assert len(keys_of(store)) == 1


def test_closed_store_is_one_line(store, capsys, monkeypatch):
    record = add_image(store, 1)
    image_path(store, record.key).write_bytes(b"")

    def refuse(store, key):
        raise PermissionError(13, "Permission denied", str(store))

    monkeypatch.setattr(image_store, "remove_image", refuse)
    assert "Permission denied" in refusal(capsys, "verify", "--remove", status=4)
