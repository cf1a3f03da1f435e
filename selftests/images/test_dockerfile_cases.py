"""The table of what a Dockerfile means."""

import bz2
import gzip
import io
import lzma
import posixpath
import re
import tarfile

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images.added import zstd
from pytest_otval.images.bases import Bases, own_sources
from pytest_otval.images.copying import members
from pytest_otval.images.plan import dockerfile_plan
from pytest_otval.images.steps import CopyFromStep, CopyStep, RunStep
from pytest_otval.profile import ImageNames, Profile, Recipe
from selftests.images.dockerfile_cases import CASES


def archives():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("inside"))
    plain = out.getvalue()
    return {
        "t.tar": plain,
        "t.tgz": gzip.compress(plain),
        "t": gzip.compress(plain),
        "t.tar.bz2": bz2.compress(plain),
        "t.tar.xz": lzma.compress(plain),
        "t.tar.zst": zstd.compress(plain),
        "text.gz": gzip.compress(b"no archive"),
    }


ARCHIVES = archives()


@pytest.fixture
def two_bases(tmp_path, silent_registry):
    images = (ImageNames(names=("debian:12",), recipe="bookworm"), ImageNames(names=("tools:1",), recipe="tools"))
    recipes = {name: Recipe(suite=name) for name in ("bookworm", "tools")}
    profile = Profile(name="test", images=images, recipes=recipes)
    return Bases(profile, own_sources(tmp_path / "store", profile, registry=silent_registry))


@pytest.fixture
def plan(environment, two_bases):
    def make(case):
        text = case.lines
        if not re.search(r"^(from |ARG foo=)", text, re.MULTILINE | re.IGNORECASE):
            text = "FROM debian:12\n" + text
        folder = environment(text)
        used = {name: data for name, data in ARCHIVES.items() if name in text.split()}
        for name, content in {**used, **case.files}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            elif content.startswith("-> "):
                path.symlink_to(content[3:])
            else:
                path.write_text(content)
        return dockerfile_plan(folder, two_bases, all_root=False)

    return make


@pytest.mark.parametrize("case", CASES, ids=[case.name.replace(" ", "-") for case in CASES])
def test_case(plan, case):
    if case.refused is not None:
        with pytest.raises(Conclusion) as caught:
            plan(case)
        reason, line, words = case.refused
        assert caught.value.reason == reason
        assert words in caught.value.headline
        assert "\n" not in caught.value.headline
        assert not line or caught.value.headline.startswith(f"environment/Dockerfile:{line}: ")
        return
    made = plan(case)
    if case.steps is not None:
        assert tuple(step.text.split()[0].upper() for step in made.steps) == case.steps
    values = {name: getattr(made.config, name) for name in case.config}
    assert values == dict(case.config)
    assert {name: made.config.env.get(name) for name in case.image_env} == dict(case.image_env)
    check_run(case, [step for step in made.steps if isinstance(step, RunStep)])
    check_copy(case, made)


def check_run(case, runs):
    if case.env:
        assert {name: runs[-1].env.get(name) for name in case.env} == dict(case.env)
    if case.argv is not None:
        assert runs[-1].argv == case.argv
    if case.script is not None:
        assert runs[-1].script == case.script
        assert runs[-1].argv[0].startswith("/.otval-build/")
    if case.workdir is not None:
        assert runs[-1].workdir == case.workdir
    if case.user is not None:
        assert (runs[-1].user or "root") == case.user


def check_copy(case, made):
    step = next((step for step in reversed(made.steps) if isinstance(step, CopyStep | CopyFromStep)), None)
    for name, value in (("owner", case.owner), ("mode", case.mode)):
        assert value is None or getattr(step, name) == value
    if case.to is not None:
        assert (step.destination, step.into_folder) == case.to
    if case.origin is not None:
        assert (len(step.origin.steps), step.paths) == case.origin
    if case.copied is not None:
        paths = []
        for source in step.sources:
            found = [source.name] if source.url else brought(made.context, source)
            paths += [posixpath.normpath(path) for path in found]
        assert tuple(paths) == case.copied
    if case.unpacked is not None:
        assert tuple(source.archive for source in step.sources) == case.unpacked
    if case.inline:
        assert {source.name: source.inline.decode() for source in step.sources if source.entry is None} == case.inline


def brought(context, source):
    return [member.header.name for member in members(context, source, source.name, (0, 0), "")]


def test_names_are_unique():
    assert len({case.name for case in CASES}) == len(CASES)
