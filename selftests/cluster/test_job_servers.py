"""Models that a job serves: there before its pytest, watched with it, gone with the job, whatever happens."""

import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from pytest_otval.cluster.job import TERMINATED
from pytest_otval.cluster.request import Models, Request, write_request
from pytest_otval.llm.weights import RECORD, Weights
from pytest_otval.profile import ModelSection, load_profile
from selftests.cluster.nodes import IDS, RUNS, answers, start

WELL = "from selftests.llm.server import main; sys.argv[1:] = ['--port', sys.argv[1]]; main()"


@pytest.fixture
def serves(node, tmp_path):
    """Let the jobs of the run serve a model by a Python script; return the processes of it that there are."""
    program = tmp_path / "server.py"

    def make(script):
        program.write_text(f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n{script}\n")
        weights = Weights("org/m", "0" * 40, whole=True)
        (tmp_path / "models" / weights.name).mkdir(parents=True)
        (tmp_path / "models" / weights.name / RECORD).write_text(json.dumps(asdict(weights)))
        serve = {"in_job": True, "gpus": 0, "command": (sys.executable, str(program), "{port}")}
        node.stage(m=ModelSection.model_validate({"repository": "org/m", "serve": serve}))
        write_request(node.run, Request("site", "p", 2, 3600, 60, models=Models(("m",), served=("m",))))

        def alive():
            lines = [(one, one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"])]
            return [one for one, words in lines if words[1:2] == [str(program)]]

        return alive

    return make


def test_a_job_serves_its_models_as_long_as_it_lives(node, serves):
    alive = serves(WELL)
    node.script(f"cp {node.folder}/ws/clusters/site.toml {node.run}/seen.toml\n{answers(*IDS[:2])}")
    assert node.live() == 0
    (node.run / "clusters").mkdir()
    (node.run / "seen.toml").rename(node.run / "clusters" / "site.toml")
    section = load_profile("site", node.run).models["m"]
    assert section.base_url.startswith("http://127.0.0.1:") and not section.serve.in_job
    assert not alive() and (node.attempt.fault, node.attempt.answers) == ("", 2)


def test_where_no_server_comes_up_nothing_is_asked(node, serves, capfd):
    alive = serves("sys.exit('no memory left on the device')")
    node.script("exit 0")
    assert node.live() == 1
    assert not (node.folder / "words").exists() and not alive()
    assert node.attempt.fault == "server"
    assert node.attempt.why == "the server of m: it ended with status 1: 2 items are left"
    assert "no memory left on the device" in capfd.readouterr().err


def test_a_server_that_dies_ends_the_job_and_what_is_answered_stays(node, serves):
    alive = serves(WELL)
    process = start(node, f"{answers(IDS[0])}\n{RUNS}\nexec sleep 600")
    (server,) = alive()
    server.kill()
    assert process.wait() == 1, process.communicate()
    process.communicate()
    assert (node.attempt.fault, node.attempt.answers) == ("server", 1)
    assert node.attempt.why == "the server of m: it was killed by signal 9: 1 items are left"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_server_is_left_by_a_job_that_is_ended(node, serves, number):
    alive = serves(WELL)
    process = start(node, f"echo $$ >{node.run}/pytest\n{RUNS}\nexec sleep 600")
    servers = alive()
    os.kill(process.pid, number)
    assert process.wait() == (TERMINATED if number == signal.SIGTERM else -signal.SIGKILL)
    process.communicate()
    if number == signal.SIGKILL:
        os.kill(int((node.run / "pytest").read_text()), signal.SIGKILL)
    psutil.wait_procs(servers, timeout=60)
    assert servers and not alive()


def test_a_job_that_is_ended_while_its_server_starts(node, serves):
    serves(f"open({str(node.run / 'up')!r}, 'w').close(); import time; time.sleep(600)")
    process = start(node, "exit 0", ready=node.run / "up")
    process.send_signal(signal.SIGTERM)
    assert process.wait() == TERMINATED, process.communicate()
    process.communicate()
    assert (node.attempt.fault, node.attempt.why) == ("slurm", "it was ended by Slurm before it ran anything")
