"""``[otval.runtimes]`` of a dataset.toml: written whole, without a change of anything else, and read."""

import json
import os
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.runtimes import named as module
from pytest_otval.runtimes.named import NotNamedError, name_in_dataset, with_named, with_named_before
from pytest_otval.runtimes.recipe import find_recipe, runtime_id
from pytest_otval.runtimes.record import (
    TASK_JSON,
    VERIFIER_JSON,
    Reference,
    read_reference,
    write_record,
    write_reference,
)
from pytest_otval.runtimes.script import asking_of_agent
from pytest_otval.runtimes.store import Runtimes
from pytest_otval.stages.saving import Saved, name_runtimes, restore_runtimes, save_runtimes
from pytest_otval.task.dataset import load_dataset
from selftests.conftest import REPOSITORY
from selftests.fakes import TOML as TASK_TOML
from selftests.fakes import make_task
from selftests.kills import killed_at_each_step
from selftests.runtimes.made import put

ONE, TWO = f"tools-{'1' * 12}", f"tools-{'2' * 12}"
SUM, OTHER = "a" * 64, "b" * 64
TOML = """# ours
[dataset]
name = "org/data"   # a name

[otval]
oracle = "none"

[[otval.allow]]
check = "x"

[otval.known_bad.task-a]
reason = "x"
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "dataset.toml").write_text(TOML)
    return tmp_path / "data" / "dataset.toml"


def named_in(file):
    return load_dataset(file.parent).settings.runtimes


def test_a_line_a_runtime_and_comments_stay(file):
    file.chmod(0o640)
    name_in_dataset(file, {ONE: SUM})
    name_in_dataset(file, {TWO: SUM})
    name_in_dataset(file, {ONE: OTHER})
    assert named_in(file) == {ONE: OTHER, TWO: SUM}
    text = file.read_text()
    assert text.startswith('# ours\n[dataset]\nname = "org/data"   # a name\n')
    assert [line for line in TOML.splitlines() if line not in text.splitlines()] == []
    assert f'{ONE} = "sha256:{OTHER}"' in text.splitlines()
    assert file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in file.parent.iterdir()] == ["dataset.toml"]


def test_what_is_named_is_not_written_again(file):
    name_in_dataset(file, {ONE: SUM})
    before = file.stat().st_ino
    name_in_dataset(file, {ONE: SUM})
    name_in_dataset(file, {})
    assert file.stat().st_ino == before


def test_a_file_that_needs_no_edit_is_not_parsed_for_one(file, monkeypatch):
    """It would be for each item, and takes long in a file of many tasks."""
    name_in_dataset(file, {ONE: SUM})
    monkeypatch.setattr("tomlkit.parse", lambda text: pytest.fail("parsed"))
    name_in_dataset(file, {ONE: SUM})


def test_without_a_dataset_toml_none_is_made(tmp_path):
    name_in_dataset(tmp_path / "dataset.toml", {ONE: SUM})
    assert list(tmp_path.iterdir()) == []


def test_many_writers_lose_nothing(file):
    ids = [f"tools-{number:012x}" for number in range(8)]
    writers = [threading.Thread(target=name_in_dataset, args=(file, {one: SUM})) for one in ids]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(named_in(file)) == ids


def make_link(file):
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


def make_fifo(file):
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (make_link, "is a link"),
        (make_fifo, "is a FIFO"),
        (lambda file: file.write_text("otval = 3"), "cannot take a table"),
        (lambda file: file.write_text("[otval]\nruntimes = 'x'"), "cannot take a table"),
        (lambda file: file.write_text("not toml"), "cannot take a table"),
        (lambda file: file.write_bytes(b"\xff"), "cannot take a table"),
    ],
)
def test_a_file_that_cannot_take_it_stays_as_it_is(file, spoil, said):
    spoil(file)
    before = sorted(path.name for path in file.parent.iterdir())
    with pytest.raises(NotNamedError, match=said) as caught:
        name_in_dataset(file, {ONE: SUM})
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in file.parent.iterdir()) == before


def test_a_write_that_breaks_off_leaves_the_old_file(file, monkeypatch):
    def broken(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", broken)
    with pytest.raises(NotNamedError, match="No space left"):
        name_in_dataset(file, {ONE: SUM})
    assert file.read_text() == TOML
    assert [path.name for path in file.parent.iterdir()] == ["dataset.toml"]


def test_a_write_that_is_killed_anywhere_leaves_the_old_file_or_the_new(file):
    for step in killed_at_each_step(lambda: name_in_dataset(file, {ONE: SUM}), file.parent):
        assert file.read_text() == TOML or named_in(file) == {ONE: SUM}, step
    assert named_in(file) == {ONE: SUM}


KEYS = st.sampled_from(["a", "b", "otval", "runtimes", "x y", "allow"])
TABLES = st.recursive(
    st.one_of(st.integers(-5, 5), st.text(max_size=3), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, TABLES, max_size=4))
def test_nothing_else_changes_in_any_file(data):
    import tomlkit

    text = tomlkit.dumps(data)
    try:
        after = tomli.loads(with_named(text.encode(), {ONE: SUM}).decode())
    except NotNamedError:
        assert not isinstance(data.get("otval", {}), dict) or not isinstance(data["otval"].get("runtimes", {}), dict)
        return
    table = after["otval"].pop("runtimes")
    assert table.pop(ONE) == f"sha256:{SUM}"
    before = tomli.loads(text)
    assert table == before.get("otval", {}).pop("runtimes", {})
    if not before.get("otval", True):
        before.pop("otval")
    after = {key: value for key, value in after.items() if value or key in before}
    assert after == before


@given(st.text(alphabet="[]otval.runtimes= \n\"'#{}1,x", max_size=60))
def test_whatever_the_file_is_it_is_edited_or_told(text):
    try:
        before = tomli.loads(text)
    except ValueError:
        before = None
    try:
        after = tomli.loads(with_named(text.encode(), {ONE: SUM}).decode())
    except NotNamedError:
        return
    assert before is not None and after["otval"]["runtimes"][ONE] == f"sha256:{SUM}"


@pytest.mark.parametrize("value", ['"x"', '{tools = "sha256:1"}', '{"tools-1" = "x"}', f'{{{ONE} = "{SUM}"}}', "[1]"])
def test_what_names_no_runtime_is_a_finding(file, value):
    file.write_text(f"[otval]\nruntimes = {value}\n")
    dataset = load_dataset(file.parent)
    assert dataset.settings.runtimes == {}
    assert [one.check for one in dataset.findings if one.check.startswith("ds-inv")] == ["ds-invalid"]


def test_a_dataset_that_is_prepared_anew_keeps_them(file):
    name_in_dataset(file, {ONE: SUM})
    new = f'[dataset]\nname = "org/new"\n[otval.runtimes]\n{TWO} = "sha256:{SUM}"\n'.encode()
    file.write_bytes(with_named_before(new, file))
    assert named_in(file) == {ONE: SUM, TWO: SUM}
    assert b"org/new" in file.read_bytes() and b"org/data" not in file.read_bytes()
    assert with_named_before(new, file.with_name("none")) == new


# --- tasks whose files are gone ---

SETUP = "#!/bin/bash\n. ot-runtime.sh\not_runtime tools || { touch $OT_RUNTIME/x && ot_runtime_save; }\n"
TEST = "#!/bin/bash\n. ot-runtime.sh\not_runtime python-verifier || exit 1\n"


@pytest.fixture
def task(tmp_path):
    made = make_task(tmp_path, files={"setup_files/setup.sh": SETUP, "tests/test.sh": TEST})
    (tmp_path / "set" / "dataset.toml").write_text('[dataset]\nname = "org/set"\n')
    return made


def id_of(task, env=(), workdir=None):
    return runtime_id("tools", "0" * 64, asking_of_agent(task).definition, json.dumps([env, workdir]))


def references(task):
    return read_reference(task.path / "setup_files" / TASK_JSON), read_reference(task.path / "tests" / VERIFIER_JSON)


def test_the_files_of_a_task_are_written_again(fake_machine, task):
    old = f"python-verifier-{'3' * 12}"
    named = {id_of(task): SUM, ONE: OTHER, old: OTHER}
    assert restore_runtimes(fake_machine(), task, named, REPOSITORY)
    root = "/opt/otval/runtimes"
    assert references(task) == (
        Reference(id_of(task), SUM, f"{root}/tools"),
        Reference(old, OTHER, f"{root}/python-verifier"),
    )
    assert not restore_runtimes(fake_machine(), task, named, REPOSITORY)


def test_the_right_one_of_a_recipe_goes_before_others(fake_machine, task):
    now = find_recipe("python-verifier", REPOSITORY).id
    named = {now: SUM, f"python-verifier-{'3' * 12}": OTHER}
    assert restore_runtimes(fake_machine(), task, named, REPOSITORY)
    assert references(task)[1].id == now
    (task.path / "tests" / VERIFIER_JSON).unlink()
    several = {f"python-verifier-{number * 12}": SUM for number in "34"}
    assert not restore_runtimes(fake_machine(), task, several, REPOSITORY)


def test_a_task_that_was_changed_does_not_get_the_runtime_of_another(fake_machine, task):
    assert not restore_runtimes(fake_machine(), task, {ONE: SUM}, REPOSITORY)
    assert references(task) == (None, None)


def test_what_cannot_be_restored_is_the_stages_to_tell(fake_machine, task):
    machine = fake_machine()

    def no_plan(request):
        raise Conclusion("base-unavailable", "x")

    machine.images.plan = no_plan
    assert not restore_runtimes(machine, task, {id_of(task): SUM}, REPOSITORY)
    (task.path / "setup_files" / TASK_JSON).mkdir()
    assert not restore_runtimes(fake_machine(), task, {id_of(task): SUM}, REPOSITORY)


def test_what_cannot_be_restored_keeps_no_other_from_it(fake_machine, task):
    """The agent's image has no plan; the verifier's recipe needs none."""
    machine = fake_machine()

    def no_plan(request):
        raise Conclusion("base-unavailable", "x")

    machine.images.plan = no_plan
    now = find_recipe("python-verifier", REPOSITORY).id
    assert restore_runtimes(machine, task, {now: SUM}, REPOSITORY)
    assert references(task)[1].id == now


def test_variables_and_folder_of_the_script_are_of_the_id(fake_machine, tmp_path):
    toml = TASK_TOML.replace("[environment]", '[environment]\nworkdir = "/w"\nenv = {VERSION = "${V}", A = "1"}')
    task = make_task(tmp_path, toml=toml, files={"setup_files/setup.sh": SETUP})
    assert not restore_runtimes(fake_machine(), task, {id_of(task): SUM}, REPOSITORY)
    right = id_of(task, [("A", "1"), ("VERSION", "${V}")], "/w")
    assert restore_runtimes(fake_machine(), task, {right: SUM}, REPOSITORY)


@pytest.fixture
def saving(fake_machine, tmp_path):
    """A machine that installs nothing: ``installed`` is what it was asked for."""
    machine = fake_machine()
    machine.runtimes = Runtimes(tmp_path / "cache")
    machine.installed = []

    def ensure(installation, log=None, anew=False):
        machine.installed.append(installation.id)
        made = put(machine.runtimes, text=installation.id)
        runtime = replace(made, id=installation.id, path=installation.path)
        write_record(machine.runtimes.cache, runtime)
        return runtime

    machine.installer = SimpleNamespace(ensure=ensure)
    return machine


def test_what_a_script_would_install_otherwise_now_is_saved_anew(saving, tmp_path):
    task = make_task(tmp_path, files={"setup_files/setup.sh": SETUP})
    assert len(save_runtimes(saving, task, REPOSITORY)) == 1
    assert save_runtimes(saving, task, REPOSITORY) == []
    first = references(task)[0]
    (task.path / "setup_files/setup.sh").write_text(SETUP.replace("touch", "mkdir"))
    assert len(save_runtimes(saving, task, REPOSITORY)) == 1
    assert references(task)[0].id == saving.installed[-1] != first.id
    assert save_runtimes(saving, task, REPOSITORY) == []


def test_what_a_recipe_made_before_it_was_changed_goes_on(saving, tmp_path):
    task = make_task(tmp_path, files={"tests/test.sh": TEST})
    old = put(saving.runtimes, "python-verifier")
    write_reference(task.path / "tests" / VERIFIER_JSON, Reference.of(old))
    assert save_runtimes(saving, task, REPOSITORY) == []


def test_a_recipe_that_is_wrong_is_told_only_where_it_is_needed(fake_machine, task, tmp_path):
    folder = tmp_path / "own" / "runtimes" / "python-verifier"
    folder.mkdir(parents=True)
    (folder / "runtime.toml").write_text("x")
    (folder / "install.sh").touch()
    with pytest.raises(OtvalUsageError, match="cannot be read"):
        restore_runtimes(fake_machine(), task, {ONE: SUM}, tmp_path / "own")
    write_reference(task.path / "tests" / VERIFIER_JSON, Reference(ONE, SUM, "/opt/x"))
    assert not restore_runtimes(fake_machine(), task, {ONE: SUM}, tmp_path / "own")


def test_a_dataset_names_what_its_tasks_name(fake_machine, task, tmp_path):
    folder = tmp_path / "set"
    restore_runtimes(fake_machine(), task, {id_of(task): SUM}, REPOSITORY)
    assert name_runtimes(task, load_dataset(folder), []) == ""
    assert load_dataset(folder).settings.runtimes == {id_of(task): SUM}
    runtime = put(Runtimes(tmp_path / "cache"))
    saved = Saved(task.path / "tests" / VERIFIER_JSON, runtime)
    write_reference(saved.file, Reference.of(runtime))
    assert name_runtimes(task, load_dataset(folder), [saved]) == ""
    assert load_dataset(folder).settings.runtimes == {id_of(task): SUM, runtime.id: runtime.checksum}
    (folder / "dataset.toml").unlink()
    (folder / "dataset.toml").symlink_to("/dev/null")
    assert "is a link" in name_runtimes(task, load_dataset(folder), [saved])
