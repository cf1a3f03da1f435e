"""build: what the image gives away fails it, and is not looked for twice."""

from dataclasses import replace

import pytest

from pytest_otval.core import Severity, Verdict
from pytest_otval.images.model import Image, ImageConfig
from pytest_otval.stages import build
from pytest_otval.stages.question import Question
from pytest_otval.task.dataset import DatasetSettings
from selftests.fakes import FakeImages, ask, make_task
from selftests.leaks.conftest import pack


class PackedImages(FakeImages):
    """Gives an image of one layer over a base."""

    def __init__(self, folder, layer):
        super().__init__()
        self.base = (pack(folder / "base.sqfs", {"etc/x": "x"}),)
        self.image = Image("0" * 64, (*self.base, pack(folder / "layer.sqfs", layer)), "1" * 64, "b", ImageConfig())

    def ensure(self, request, log=None):
        return self.image

    def base_files(self, request):
        return self.base


@pytest.fixture
def case(fake_machine, tmp_path):
    def make(layer, **verdict):
        machine = fake_machine(images=PackedImages(tmp_path, layer), **verdict)
        task = make_task(tmp_path, solve="echo the reference solution, of some length")
        return machine, Question(task, DatasetSettings(), tmp_path / "evidence", digest="sha256:1")

    return make


SOLVE = "#!/bin/bash\necho the reference solution, of some length\n"


@pytest.mark.parametrize(
    ("layer", "severity", "reason"),
    [
        ({"root/x": SOLVE}, Severity.ERROR, "image-leaks"),
        ({"logs/verifier/reward.txt": "1"}, Severity.ERROR, "expected"),
        ({"logs/verifier/reward.txt": "1"}, Severity.WARNING, "image-leaks"),
        ({"root/y": "y"}, Severity.INFO, "expected"),
    ],
)
def test_verdict(case, layer, severity, reason):
    result, _ = ask("build", *case(layer, severity=severity))
    assert result.reason == reason
    assert result.facts["image"]["key"] == "0" * 64
    assert [one["check"][:6] for one in result.facts["checks"]] == ([] if "root/y" in layer else ["image-"])
    assert set(result.facts["seconds"]) == {"total", "waited"}
    if reason == "image-leaks":
        assert result.verdict is Verdict.FAIL
        assert result.headline.startswith(result.facts["checks"][0]["path"])


def test_other_stages_run_on_such_an_image(case):
    machine, question = case({"root/x": SOLVE})
    assert ask("noop", machine, question)[0].reason != "image-failed"


def test_the_same_image_of_the_same_task_is_looked_into_once(case, monkeypatch):
    machine, question = case({"root/x": SOLVE})
    looked = []
    real = build.scan
    monkeypatch.setattr(build, "scan", lambda *args: looked.append(args) or real(*args))
    first, again = (ask("build", machine, question)[0] for _ in range(2))
    assert (len(looked), first.facts["checks"]) == (1, again.facts["checks"])
    for other in (replace(question, digest="sha256:2"), replace(question, digest="")):
        ask("build", machine, other)
    machine.images.image = replace(machine.images.image, content="2" * 64)
    ask("build", machine, question)
    assert len(looked) == 4


def test_image_that_cannot_be_read_is_told(fake_machine, tmp_path):
    result, _ = ask("build", fake_machine(), Question(make_task(tmp_path), DatasetSettings(), tmp_path / "evidence"))
    assert result.reason == "expected"
    assert [(one["check"], one["severity"]) for one in result.facts["checks"]] == [("image-not-read", "info")]
