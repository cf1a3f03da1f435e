import pytest

from pytest_otval.core import Conclusion
from pytest_otval.runtimes.mount import Supply, agent_supply, verifier_supply
from pytest_otval.runtimes.record import ROOT, Reference, write_reference
from pytest_otval.runtimes.store import Runtimes
from selftests.fakes import make_task
from selftests.runtimes.made import put

ASKS = {"tests/setup.sh": "#!/bin/bash\n. ot-runtime.sh\not_runtime tools || ot_runtime_save\n"}


@pytest.fixture
def runtimes(tmp_path):
    return Runtimes(tmp_path / "cache")


def supply_of(runtimes, tmp_path, files=ASKS, runtime=None):
    task = make_task(tmp_path, files=files)
    if runtime is not None:
        write_reference(task.path / "tests" / "ot-verifier-runtime.json", Reference.of(runtime))
    return verifier_supply(runtimes, task.steps[0])


def test_a_task_without_runtimes(runtimes, tmp_path):
    assert supply_of(runtimes, tmp_path, {}) is None
    assert agent_supply(runtimes, make_task(tmp_path)) is None


@pytest.mark.parametrize("files", [{}, ASKS])
def test_from_the_cache(runtimes, tmp_path, files):
    runtime = put(runtimes, python="bin/python3")
    supply = supply_of(runtimes, tmp_path, files, runtime)
    supply.require("none")
    (bind,) = supply.binds
    assert (bind.source, bind.target, bind.inside, bind.own_layer) == (
        runtimes.file(runtime),
        f"{ROOT}/tools",
        f"{ROOT}/tools",
        True,
    )
    assert supply.layers == (runtimes.file(runtime),)
    found = supply.variables({"PATH": "/bin"})
    assert found["OT_PYTHON"] == f"{ROOT}/tools/bin/python3"
    assert found["PATH"] == ("/.otval/lib:/bin" if files else "/bin")
    assert str(supply) == f"{runtime.id}@sha256:{runtime.checksum}"
    supply.require_done(tmp_path)


def test_missing_it_can_be_installed_where_there_is_a_network(runtimes, tmp_path):
    runtime = put(runtimes)
    runtimes.file(runtime).unlink()
    supply = supply_of(runtimes, tmp_path, ASKS, runtime)
    supply.require("public")
    with pytest.raises(Conclusion, match="no network") as caught:
        supply.require("none")
    assert caught.value.reason == "runtime-missing"
    assert (supply.binds, supply.layers) == ([], ())
    (told,) = supply.told(tmp_path / "told")
    assert "_ot_state=missing" in (told.source / "state").read_text()
    with pytest.raises(Conclusion, match="did not come to its end"):
        supply.require_done(told.source)
    (told.source / "done").touch()
    supply.require_done(told.source)
    assert str(supply) == "tools: installed in the trial"


def test_missing_and_nobody_installs_it(runtimes, tmp_path):
    runtime = put(runtimes)
    runtimes.file(runtime).unlink()
    supply = supply_of(runtimes, tmp_path, {}, runtime)
    with pytest.raises(Conclusion, match="no script installs it") as caught:
        supply.require("public")
    assert caught.value.reason == "runtime-missing"


def test_named_by_nobody_yet(runtimes, tmp_path):
    supply = supply_of(runtimes, tmp_path)
    assert (supply.name, supply.path, supply.state) == ("tools", f"{ROOT}/tools", "missing")
    assert supply.variables({})["PATH"].startswith("/.otval/lib:/usr/local/sbin:")


def test_file_and_script_that_name_two_runtimes(runtimes, tmp_path):
    with pytest.raises(Conclusion, match=r"names other, setup\.sh asks for tools") as caught:
        supply_of(runtimes, tmp_path, ASKS, put(runtimes, "other"))
    assert caught.value.reason == "bad-task"


def test_words_of_any_kind_reach_the_helper(runtimes, tmp_path):
    supply = Supply("tools", "/opt/x", why="a 'quoted' $(touch /tmp/never)\nword", asks=True)
    (told,) = supply.told(tmp_path / "told")
    assert (told.source / "state").read_text().count("\n") == 5
    assert "'\"'\"'quoted'\"'\"'" in (told.source / "state").read_text()
