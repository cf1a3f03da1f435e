import os

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images.model import Image, ImageConfig
from pytest_otval.sandbox.gpus import Gpu
from pytest_otval.stages import question as question_module
from pytest_otval.stages.question import agent_image, config_of, require_owners, require_runnable, verifier_image
from pytest_otval.task.load import load_task
from selftests.fakes import TOML, FakeSandbox, make_task

SEPARATE = TOML + 'environment_mode = "separate"\n'
STEPS = TOML + '[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n'


def image(tmp_path, user=None):
    return Image("k", (tmp_path / "image.sqfs",), "c", "b", ImageConfig(user=user))


def reason_of(task):
    try:
        require_runnable(task)
    except Conclusion as conclusion:
        return conclusion.reason, conclusion.headline
    return "runnable", ""


def needed_owner(task, image, maps_uids=False):
    try:
        require_owners(task, image.config.user, FakeSandbox(maps_uids=maps_uids))
    except Conclusion as conclusion:
        assert conclusion.reason == "needs-uid-mapping"
        return conclusion.headline
    return None


def test_plain_task_is_runnable(tmp_path):
    task = make_task(tmp_path)
    assert reason_of(task) == ("runnable", "")
    assert agent_image(task).context == task.path / "environment"
    assert verifier_image(task.steps[0]) is None


@pytest.mark.parametrize("name", ["docker-compose.yaml", "docker-compose.yml", "compose.yaml"])
def test_compose(tmp_path, name):
    assert reason_of(make_task(tmp_path, files={f"environment/{name}": ""})) == (
        "compose",
        f"environment/{name} needs docker compose",
    )


def test_compose_of_a_separate_verifier(tmp_path):
    files = {"tests/docker-compose.yaml": ""}
    assert reason_of(make_task(tmp_path, toml=SEPARATE, files=files))[0] == "compose"
    assert reason_of(make_task(tmp_path / "shared", files=files))[0] == "runnable"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ('os = "windows"', "windows"),
        ('os = "Windows"', "windows"),
        ("gpus = 1", "no-gpu"),
        ("gpus = 0", "runnable"),
        ('tpu = { type = "v4", topology = "2x2" }', "no-gpu"),
    ],
)
def test_machines_that_are_not_here(tmp_path, monkeypatch, lines, reason):
    monkeypatch.setattr(question_module, "node_gpus", lambda: ())
    assert reason_of(make_task(tmp_path, toml=f"[environment]\n{lines}\n"))[0] == reason
    toml = f"[verifier.environment]\n{lines}\n"
    assert reason_of(make_task(tmp_path / "verifier", toml=toml))[0] == reason


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("gpus = 2", "runnable"),
        ("gpus = 3", "no-gpu"),
        ('gpus = 1\ngpu_types = ["H100", "T4"]', "runnable"),
        ('gpus = 1\ngpu_types = ["H100"]', "no-gpu"),
        ('gpus = 1\ntpu = { type = "v4", topology = "2x2" }', "no-gpu"),
    ],
)
def test_gpus_of_this_machine(tmp_path, monkeypatch, lines, reason):
    monkeypatch.setattr(question_module, "node_gpus", lambda: (Gpu(0, model="Tesla T4"), Gpu(1, model="NVIDIA L4")))
    assert reason_of(make_task(tmp_path, toml=f"[environment]\n{lines}\n"))[0] == reason


def test_bad_task_says_what_is_wrong(tmp_path):
    task = make_task(tmp_path, toml="[agent\n")
    for asked in (config_of, agent_image, require_runnable):
        with pytest.raises(Conclusion, match=r"bad-task: task\.toml:1: toml-parse") as caught:
            asked(task)
        assert caught.value.reason == "bad-task"


@pytest.mark.parametrize("name", ["solution", "tests", "setup_files"])
@pytest.mark.parametrize("goal", ["../../other", "/etc", "nowhere", "solution-loop"])
def test_link_out_of_the_task(tmp_path, name, goal):
    """What lies there belongs to the host; it would be copied into the task's containers."""
    task = make_task(tmp_path, solve=None, test=None)
    (tmp_path / "set" / "other").mkdir()
    (task.path / "solution-loop").symlink_to(name)
    (task.path / name).symlink_to(goal)
    assert reason_of(task) == ("bad-task", f"{name} leads out of the task: make it a folder")


def test_link_out_of_the_task_above_a_step(tmp_path):
    (tmp_path / "elsewhere" / "solution").mkdir(parents=True)
    task = make_task(tmp_path, toml=STEPS, files={"steps/one/tests/test.sh": ""})
    (task.path / "steps" / "two").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "tests").mkdir()
    assert reason_of(task)[0] == "bad-task"


def test_link_within_the_task_is_followed(tmp_path):
    task = make_task(tmp_path)
    os.rename(task.path / "solution", task.path / "real")
    (task.path / "solution").symlink_to("real")
    assert reason_of(load_task(task.path, "set"))[0] == "runnable"


@pytest.mark.parametrize(
    ("solve", "test", "where"),
    [
        ("true", "true", None),
        ("true\nsu nobody -c id", "true", "solution/solve.sh:3: su"),
        ("true", "apt-get install -y x", "tests/test.sh:2: apt-get"),
        ("chown root:root /x", "true", None),
        ("chown app /x", "true", "solution/solve.sh:2: chown"),
        ("echo chown app", "true", None),
    ],
)
def test_lines_that_need_owners(tmp_path, solve, test, where):
    task = make_task(tmp_path, solve, test)
    assert needed_owner(task, image(tmp_path)) == where
    assert needed_owner(task, image(tmp_path), maps_uids=True) is None


@pytest.mark.parametrize("name", ["setup_files/setup.sh", "tests/setup.sh"])
def test_set_ups_that_need_owners(tmp_path, name):
    task = make_task(tmp_path, files={name: "\n\nuseradd app\n"})
    assert needed_owner(task, image(tmp_path)) == f"{name}:3: useradd"


@pytest.mark.parametrize(
    ("toml", "user", "where"),
    [
        (TOML, "app", "environment/Dockerfile USER: user app"),
        (TOML, "1000:1000", "environment/Dockerfile USER: user 1000:1000"),
        (TOML, "root", None),
        (TOML, "0:0", None),
        ('[agent]\nuser = "app"\n', None, "task.toml [agent]: user app"),
        ("[agent]\nuser = 1000\n", None, "task.toml [agent]: user 1000"),
        ("[agent]\nuser = 0\n", None, None),
        ('[verifier]\nuser = "app"\n', None, "task.toml [verifier]: user app"),
        (
            '[[verifier.collect]]\ncommand = "x"\nuser = "app"\n',
            None,
            "task.toml [[verifier.collect]]: user app",
        ),
    ],
)
def test_users_that_need_mapping(tmp_path, toml, user, where):
    assert needed_owner(make_task(tmp_path, toml=toml), image(tmp_path, user)) == where


def test_scripts_that_are_no_files_need_nothing(tmp_path):
    task = make_task(tmp_path, solve=None, test=None)
    (task.path / "solution").mkdir()
    os.mkfifo(task.path / "solution" / "solve.sh")
    (task.path / "tests").mkdir()
    (task.path / "tests" / "test.sh").symlink_to("/etc/passwd")
    assert needed_owner(task, image(tmp_path)) is None
