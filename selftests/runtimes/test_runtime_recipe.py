import shutil

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.runtimes.recipe import PACKAGED, find_recipe, recipe_names
from pytest_otval.runtimes.record import ROOT

TOML = 'description = "x"\nbase = "debian:12"\n'


@pytest.fixture
def write(tmp_path):
    def make(toml=TOML, script="true\n", name="mine"):
        folder = tmp_path / "runtimes" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "runtime.toml").write_text(toml)
        if script is not None:
            (folder / "install.sh").write_text(script)
        return find_recipe(name, tmp_path)

    return make


def test_our_recipes_come_with_the_package(tmp_path):
    assert "python-verifier" in recipe_names(tmp_path)
    for name in recipe_names(tmp_path):
        recipe = find_recipe(name, tmp_path)
        assert recipe.folder.parent == PACKAGED
        assert recipe.path == f"{ROOT}/{name}"


def test_a_recipe_of_ones_own_wins(write, tmp_path):
    assert write(name="python-verifier").folder == tmp_path / "runtimes" / "python-verifier"
    assert find_recipe("none", tmp_path) is None
    assert find_recipe("../mine", tmp_path) is None


def test_the_id_is_that_of_the_contents(write, tmp_path):
    first = write().id
    assert write().id == first
    assert write(script="false\n").id != first
    assert write(toml=f"{TOML}python = 'bin/python3'\n").id != first
    assert first.startswith("mine-")
    shutil.copytree(tmp_path / "runtimes" / "mine", tmp_path / "runtimes" / "other")
    assert find_recipe("other", tmp_path).id.startswith("other-")


def test_a_folder_may_be_common_to_recipes(write, tmp_path):
    common = tmp_path / "runtimes" / "common"
    common.mkdir(parents=True)
    (common / "lib.sh").write_text("true\n")
    recipe = write(toml=f"{TOML}common = 'common'\n")
    assert recipe.common == common
    before = recipe.id
    (common / "lib.sh").write_text("false\n")
    assert recipe.id != before
    assert "common" not in recipe_names(tmp_path)


def test_folders_of_a_recipe_count(write, tmp_path):
    recipe = write()
    ids = {recipe.id}
    for name, text in {"lib/a": "1", "lib/b": "1", "lib/deep/a": "1", "lib/deep/../b": "2"}.items():
        path = recipe.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        ids.add(recipe.id)
    assert len(ids) == 5
    (recipe.folder / "__pycache__").mkdir()
    (recipe.folder / "__pycache__" / "x.pyc").touch()
    assert recipe.id in ids


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        (f"{TOML}common = 'none'", "there is no folder"),
        (f"{TOML}common = '../other'", "common"),
        ("x", "cannot be read"),
        ("base = 'x'", "description"),
        (f"{TOML}pyhton = 'x'", "pyhton"),
        (f"{TOML}path = '/a:b'", "path"),
        (f"{TOML}seconds = 0", "seconds"),
        (f"{TOML}python = '../x y'", "python"),
        (f"{TOML}python = '/bin/python3'", "python"),
    ],
)
def test_a_wrong_recipe_is_told_in_one_line(write, toml, said):
    with pytest.raises(OtvalUsageError, match=said) as caught:
        write(toml)
    assert "\n" not in str(caught.value)


def test_a_recipe_without_a_script(write):
    with pytest.raises(OtvalUsageError, match=r"has no install\.sh"):
        write(script=None)
