"""The store: once for each key, failures remembered, errors not."""

import io
import json
import os
import subprocess
import tarfile
import threading

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images import making
from pytest_otval.images.bases import own_sources
from pytest_otval.images.model import ImageConfig, ImageRequest
from pytest_otval.images.pack import packing
from pytest_otval.images.steps import files_plan, first_copy
from pytest_otval.images.store import Images
from pytest_otval.sandbox.admission import Admission
from pytest_otval.sandbox.base import Limits
from pytest_otval.sandbox.budget import Budget

FROM = "FROM debian:12\n"


def archive(**names):
    """A tar archive: a folder for None, a link for "-> target", else a file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in names.items():
            header = tarfile.TarInfo(name)
            header.mode = 0o755
            if content is None:
                header.type = tarfile.DIRTYPE
            elif content.startswith("-> "):
                header.type, header.linkname = tarfile.SYMTYPE, content[3:]
            else:
                header.size = len(content)
            tar.addfile(header, io.BytesIO((content or "").encode()) if header.isreg() else None)
    return out.getvalue()


BASE = archive(usr=None, **{"usr/lib": None}, lib="-> usr/lib", **{"etc/passwd": "app:x:70:71::/:/bin/sh\n"})


@pytest.fixture
def images(tmp_path, profile, fake_sandbox, silent_registry, monkeypatch):
    """A function that makes a new Images over the same store, as another worker does."""
    made = []

    def bootstrap(recipe, target, all_root):
        made.append(recipe.suite)
        with packing(target, all_root) as stream:
            os.write(stream, BASE)

    monkeypatch.setattr(making, "bootstrap", bootstrap)
    (tmp_path / "scratch").mkdir(exist_ok=True)

    def make(**options):
        folders = (tmp_path / "scratch", tmp_path / "run")
        images = Images(
            tmp_path / "store",
            fake_sandbox,
            profile,
            *folders,
            sources=own_sources(tmp_path / "store", profile, registry=silent_registry),
            **options,
        )
        images.bootstrapped = made
        return images

    return make


def request(folder=None, docker_image=None):
    return ImageRequest(folder, docker_image, 60.0)


def runs(sandbox):
    return [argv[-1] for argv in sandbox.argvs() if argv[0] == "/bin/sh"]


def test_build_once(images, environment, fake_sandbox, tmp_path):
    folder = environment(FROM + "RUN one\nCMD c\n")
    first = images().ensure(request(folder))
    second = images().ensure(request(folder))
    assert first == second
    assert runs(fake_sandbox) == ["one"]
    assert first.files == (tmp_path / "store" / f"{first.key}.sqfs",)
    assert first.base.startswith("bootstrap:bookworm@")
    assert first.config.cmd == ("/bin/sh", "-c", "c")
    values = json.loads(first.files[0].with_suffix(".json").read_text())
    assert (values["key"], values["content"]) == (first.key, first.content)
    assert ImageConfig.from_dict(values["config"]) == first.config
    listing = subprocess.run(["unsquashfs", "-l", first.files[0]], capture_output=True, text=True, check=True).stdout
    assert "squashfs-root/file" in listing
    assert "squashfs-root/proc" in listing


def test_leaves_nothing_but_images(images, environment, tmp_path):
    image = images().ensure(request(environment(FROM + "RUN one\n")))
    names = {path.name for path in (tmp_path / "store").iterdir()}
    base = {name for name in names if not name.startswith(image.key)}
    assert {name.rpartition(".")[2] for name in base} == {"sqfs", "json"}
    assert len(names) == 4
    assert list((tmp_path / "scratch").iterdir()) == []


def test_image_without_its_json_is_none(images, environment, fake_sandbox):
    folder = environment(FROM + "RUN one\n")
    images().ensure(request(folder)).files[0].with_suffix(".json").unlink()
    images().ensure(request(folder))
    assert runs(fake_sandbox) == ["one", "one"]


def test_layer_over_other_bytes_is_another_image(images, environment, fake_sandbox, tmp_path):
    folder = environment(FROM + "RUN one\nCOPY f /\n", {"f": "1"})
    first = images().ensure(request(folder))
    assert len(first.files) > 1
    below = first.files[-2].with_suffix(".json")
    below.write_text(json.dumps({**json.loads(below.read_text()), "content": "0" * 64}))
    before = first.files[-1].stat().st_ino
    second = images().ensure(request(folder))
    assert second.key == first.key
    assert second.files[-1].stat().st_ino != before


@pytest.mark.parametrize("kind", ["gone", "cut", "other bytes", "no record"])
@pytest.mark.parametrize("number", [0, -1])
def test_an_image_is_there_with_all_that_it_lies_on(images, environment, monkeypatch, number, kind):
    wanted = request(environment(FROM + "RUN one\nCOPY f /\n", {"f": "1"}))
    assert not images().has(wanted)
    image = images().ensure(wanted)
    assert images().has(wanted)
    assert len(image.files) > 1
    file = image.files[number]
    record = file.with_suffix(".json")
    if kind == "gone":
        file.unlink()
    elif kind == "cut":
        os.truncate(file, file.stat().st_size - 1)
    elif kind == "no record":
        record.unlink()
    else:
        record.write_text(json.dumps({**json.loads(record.read_text()), "content": "0" * 64}))
    # Other bytes of its own are what it is, as the record says.
    assert images().has(wanted) == (kind == "other bytes" and number == -1)


def test_to_know_that_an_image_is_there_none_is_opened(images, environment):
    wanted = request(environment(FROM + "RUN one\nCOPY f /\n", {"f": "1"}))
    for file in images().ensure(wanted).files:
        size = file.stat().st_size
        file.unlink()
        file.write_bytes(b"")
        os.truncate(file, size)
    assert images().has(wanted)


def test_workers_wait_for_each_other(images, environment, fake_sandbox):
    folder = environment(FROM + "RUN one\n")
    workers = [images() for _ in range(3)]
    threads = [threading.Thread(target=worker.ensure, args=(request(folder),)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert runs(fake_sandbox) == ["one"]


def test_only_what_is_built_asks_for_room_and_never_while_it_holds_some(images, environment, tmp_path, monkeypatch):
    admission, asked = Admission(tmp_path / "scratch", Budget(tuple(os.sched_getaffinity(0)), 4096)), []
    grant = admission.grant

    def counted(need):
        asked.append((need.cpus, need.memory_mb, need.gpus))
        assert admission.held is None
        return grant(need)

    monkeypatch.setattr(admission, "grant", counted)
    folder = environment(FROM + "RUN one\nCOPY file /\nRUN two\n", {"file": "x"})
    limits = Limits(cpus=1, memory_mb=512, gpus=1)
    images(admission=admission).ensure(ImageRequest(folder, None, 60.0, limits))
    assert asked == [(1.0, 0, 0), (1, 512, 0), (1, 512, 0)], "the base, the steps before the first COPY, the rest"
    images(admission=admission).ensure(ImageRequest(folder, None, 60.0, limits))
    assert len(asked) == 3


def test_fault_of_the_task_is_remembered(images, environment, fake_sandbox):
    fake_sandbox.answer = lambda argv: ("exit", 3, "a\noops\n") if argv[-1] == "bad" else None
    folder = environment(FROM + "RUN good\nRUN bad\n")
    caught = []
    for worker in (images(), images()):
        with pytest.raises(Conclusion) as error:
            worker.ensure(request(folder))
        caught.append(error.value)
    assert runs(fake_sandbox) == ["good", "bad"]
    assert caught[0].reason == caught[1].reason == "build-failed"
    assert caught[0].headline == "environment/Dockerfile:3: RUN ended with status 3: oops" == caught[1].headline
    assert caught[0].log == caught[1].log == "a\noops"


@pytest.mark.parametrize(
    ("answer", "reason", "times"),
    [
        (("exit", 1, "curl: (6) Could not resolve host: x"), "network-unreachable", 2),
        (("killed", None, ""), "killed", 2),
        (("timeout", None, ""), "build-timeout", 1),
        (("memory", None, ""), "memory-limit", 1),
    ],
)
def test_what_is_remembered(images, environment, fake_sandbox, answer, reason, times):
    fake_sandbox.answer = lambda argv: answer if argv[-1] == "bad" else None
    folder = environment(FROM + "RUN bad\n")
    for _ in range(2):
        with pytest.raises(Conclusion) as caught:
            images().ensure(request(folder))
        assert caught.value.reason == reason
    assert len(runs(fake_sandbox)) == times


def test_log_has_all_that_was_built(images, environment, fake_sandbox, tmp_path):
    fake_sandbox.answer = lambda argv: ("exit", 0, "said\n") if argv[-1] in ("install", "one") else None
    folder = environment(FROM + "RUN install\nCOPY f /app/\nRUN one\n", {"f": "1"})
    images().ensure(request(folder), tmp_path / "build.txt")
    lines = (tmp_path / "build.txt").read_text().splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == ["RUN install", "said", "COPY f /app/", "RUN one", "said"]
    images().ensure(request(folder), tmp_path / "second.txt")
    assert not (tmp_path / "second.txt").exists(), "nothing was built"


def test_owners_are_asked_before_anything_runs(images, environment, fake_sandbox):
    fake_sandbox.maps_uids = False
    with pytest.raises(Conclusion, match="user app") as caught:
        images().ensure(request(environment(FROM + "RUN one\nUSER app\n")))
    assert caught.value.reason == "needs-uid-mapping"
    assert fake_sandbox.specs == []


def test_docker_image_beats_the_dockerfile_unless_forced(images, environment):
    folder = environment(FROM + "RUN one\n")
    assert images().plan(request(folder, "debian:12")).steps == ()
    assert len(images(force_build=True).plan(request(folder, "debian:12")).steps) == 1
    assert images(force_build=True).plan(request(None, "debian:12")).steps == ()


def test_image_file(images, environment, tmp_path):
    folder = environment(FROM)
    (folder.parent / "my.sqfs").write_bytes(b"x")
    image = images().ensure(request(folder, "my.sqfs"))
    assert image.files == (folder.parent / "my.sqfs",)
    assert image.base == f"file@sha256:{image.content}"
    assert images().ensure(request(None, str(folder.parent / "my.sqfs"))).key == image.key


def test_neither_image_nor_dockerfile(images, tmp_path):
    with pytest.raises(Conclusion) as caught:
        images().plan(request(tmp_path))
    assert caught.value.reason == "bad-task"


def test_recipe_is_made_once(images):
    first = images()
    assert first.ensure_recipe("bookworm") == images().ensure_recipe("bookworm")
    assert first.bootstrapped == ["bookworm"]
    with pytest.raises(KeyError):
        images().ensure_recipe("none")


def test_offline_makes_no_base(images, environment, fake_sandbox):
    with pytest.raises(Conclusion, match="offline") as caught:
        images(offline=True).ensure(request(environment(FROM + "RUN one\n")))
    assert caught.value.reason == "base-unavailable"
    images().ensure_recipe("bookworm")
    images(offline=True).ensure(request(environment(FROM + "RUN one\n")))
    assert fake_sandbox.specs[0].network == "none"


def test_what_comes_before_the_first_copy_is_built_once(images, environment, fake_sandbox):
    head = FROM + "RUN install\nWORKDIR /app\n"
    first = images().ensure(request(environment(head + "COPY f /app/\nRUN one\n", {"f": "1"})))
    second = images().ensure(request(environment(head + "COPY f /app/\nRUN two\n", {"f": "2"})))
    assert first.key != second.key
    assert runs(fake_sandbox) == ["install", "one", "two"]


def test_time_of_a_shared_part_counts(images, environment, tmp_path, fake_sandbox):
    asked = request(environment(FROM + "RUN install\nCOPY f /\n", {"f": "1"}))
    images().ensure(asked)
    plan = images().plan(asked)
    prefix = files_plan(plan, first_copy(plan), all_root=not fake_sandbox.maps_uids)
    known = tmp_path / "store" / f"{prefix.key}.json"
    known.write_text(json.dumps({**json.loads(known.read_text()), "seconds": 40.0}))
    other = images().ensure(request(environment(FROM + "RUN install\nCOPY f /\n", {"f": "2"})))
    assert json.loads(other.files[-1].with_suffix(".json").read_text())["seconds"] >= 40
