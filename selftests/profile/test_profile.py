from pathlib import Path

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.profile import PACKAGED, load_profile
from pytest_otval.profile.facts import fact_for


@pytest.fixture
def rootdir(tmp_path, monkeypatch):
    monkeypatch.delenv("OT_WORKSPACE", raising=False)
    (tmp_path / "clusters").mkdir()
    return tmp_path


def _write(folder: Path, text: str, name: str = "site") -> None:
    (folder / "clusters").mkdir(exist_ok=True)
    (folder / "clusters" / f"{name}.toml").write_text(text)


def _error(rootdir: Path, text: str) -> str:
    _write(rootdir, text)
    with pytest.raises(OtvalUsageError) as raised:
        load_profile("site", rootdir)
    message = str(raised.value)
    assert "\n" not in message
    assert message.startswith(f"{rootdir / 'clusters' / 'site.toml'}: ")
    return message


def test_every_packaged_profile_loads(rootdir):
    names = [file.stem for file in PACKAGED.glob("*.toml")]
    assert "local" in names
    for name in names:
        assert load_profile(name, rootdir).name == name


def test_helma_is_as_its_users_know_it(rootdir):
    profile = load_profile("helma", rootdir)
    cpu, h100, preempt = (profile.slurm.choose(name)[1] for name in ("", "h100", "preempt"))
    assert (cpu.cores, cpu.core_multiple, h100.cores_per_gpu, preempt.preemptible) == (384, 48, 32, True)
    assert {partition.max_seconds for partition in profile.slurm.partitions.values()} == {86400}
    assert "work" in cpu.mounts
    assert not {"work", "archive"} & set(h100.mounts)
    places = {place.exports: (place.files_soft, place.files_hard) for place in profile.storage.values()}
    assert places == {
        "OT_STORAGE_HOME": (395594, 495594),
        "OT_STORAGE_WORKSPACES": (81920, 102400),
        "OT_STORAGE_WORK": (None, None),
        "OT_STORAGE_ARCHIVE": (200000, 400000),
        "OT_STORAGE_SCRATCH": (None, None),
    }
    assert profile.image_sources == ("registry",)
    assert "https_proxy" in profile.build.pass_env


def test_zih_shares_the_pipeline_and_marks_what_nobody_verified(rootdir):
    profile = load_profile("zih", rootdir)
    assert {"OT_STORAGE_HORSE", "OT_STORAGE_CAT"} <= {place.exports for place in profile.storage.values()}
    assert not fact_for(profile.facts, ("slurm", "partitions", "capella", "cores")).verified
    assert fact_for(profile.facts, ("storage", "horse", "path")).verified


def test_local_stands_in_for_debian_images_with_a_recipe(rootdir):
    profile = load_profile("local", rootdir)
    name = profile.recipe_name("debian:bookworm-slim")
    assert name is not None
    assert profile.recipes[name].suite == "bookworm"
    assert profile.recipe_name("ubuntu:24.04") is None
    python = profile.recipes[profile.recipe_name("python:3.11-slim")]
    assert {"python3-pip", "python-is-python3"} <= set(python.packages)
    assert python.remove == ("/usr/lib/python3*/EXTERNALLY-MANAGED",)


@pytest.mark.parametrize("pattern", ["usr/x", "/../etc/x", "/a b", "/$(id)", "/a;b", "/", "/a//b"])
def test_recipe_removes_nothing_but_files_of_its_root(rootdir, pattern):
    error = _error(rootdir, f"[recipes.x]\nsuite = 'bookworm'\nremove = ['{pattern}']")
    assert "recipes.x.remove" in error


def test_an_empty_profile_has_usable_defaults(rootdir):
    _write(rootdir, "")
    profile = load_profile("site", rootdir)
    assert profile.sandbox.flavours[0] == "fakeroot-subuid"
    assert profile.network.public == "slirp4netns"
    assert profile.build.files() == ()
    assert profile.setup.prepare == ("toolbox",)


def test_rootdir_beats_workspace_beats_package(rootdir, tmp_path_factory, monkeypatch):
    workspace = tmp_path_factory.mktemp("workspace")
    monkeypatch.setenv("OT_WORKSPACE", str(workspace))
    assert load_profile("local", rootdir).network.public == "slirp4netns"
    _write(workspace, "[network]\npublic = 'none'\n", "local")
    assert load_profile("local", rootdir).network.public == "none"
    _write(rootdir, "[network]\npublic = 'host'\n", "local")
    assert load_profile("local", rootdir).network.public == "host"


def test_rootdir_defaults_to_the_current_folder(rootdir, monkeypatch):
    _write(rootdir, "[network]\npublic = 'none'\n")
    monkeypatch.chdir(rootdir)
    assert load_profile("site").network.public == "none"


@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [
        ("sandbx = {}", "'sandbx'", "'sandbox'"),
        ("[sandbox]\nflavors = ['userns']", "'sandbox.flavors'", "'flavours'"),
        ("[recipes.x]\nsuite = 'a'\npakages = []", "'recipes.x.pakages'", "'packages'"),
        ("[[images]]\nnames = ['a']\nrecipes = 'x'\nrecipe = 'x'\n[recipes.x]\nsuite = 'a'", "recipes'", "'recipe'"),
    ],
)
def test_an_unknown_key_is_named_with_the_likely_one(rootdir, text, key, meant):
    message = _error(rootdir, text)
    assert f"{key} (did you mean {meant}?)" in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[sandbox\n", "cannot be read"),
        ("name = 'x'", "unknown key 'name'"),
        ("[sandbox]\nflavours = ['docker']", "sandbox.flavours.0"),
        ("[sandbox]\nflavours = []", "sandbox.flavours"),
        ("[network]\npublic = 1", "network.public"),
        ("[build]\nbind_files = ['etc/pip.conf']", "must start with / or ~/"),
        ("[build]\nbind_files = ['/etc/../root']", "must not hold .."),
        ("[setup]\nprepare = ['tolbox']", "neither toolbox nor image:bootstrap:RECIPE"),
        ("[setup]\nprepare = ['image:bootstrap:x']", "there is no [recipes.x]"),
        ("[[images]]\nnames = ['a']\nrecipe = 'x'", "there is no [recipes.x]"),
        ("[[images]]\nnames = ['a', 'a']\nrecipe = 'x'\n[recipes.x]\nsuite = 's'", "gives 'a' two recipes"),
    ],
)
def test_a_wrong_value_is_one_line_with_its_place(rootdir, text, says):
    assert says in _error(rootdir, text)


def test_a_file_that_is_no_utf8_is_one_line(rootdir):
    (rootdir / "clusters" / "site.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(OtvalUsageError, match="cannot be read"):
        load_profile("site", rootdir)


def test_a_missing_profile_names_the_known_ones(rootdir):
    with pytest.raises(OtvalUsageError, match=r"no cluster profile 'locl' \(did you mean 'local'\?\); known: .*local"):
        load_profile("locl", rootdir)


def test_a_name_never_leaves_the_folder(rootdir):
    (rootdir / "other.toml").write_text("")
    with pytest.raises(OtvalUsageError, match="no name of a profile"):
        load_profile("../other", rootdir)


def test_builds_get_only_what_exists_here(rootdir, tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / ".config" / "pip").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PIP_INDEX_URL", "https://packages.example/simple")
    monkeypatch.delenv("https_proxy", raising=False)
    _write(
        rootdir,
        "[build]\nbind_files = ['~/.config/pip', '/nonexistent-otval']\npass_env = ['PIP_INDEX_URL', 'https_proxy']",
    )
    build = load_profile("site", rootdir).build
    assert build.files() == ((home / ".config" / "pip", "/root/.config/pip"),)
    assert build.environment() == {"PIP_INDEX_URL": "https://packages.example/simple"}


def test_registries_and_mirrors(rootdir):
    _write(rootdir, "")
    profile = load_profile("site", rootdir)
    assert (profile.registries.pulls, profile.registries.login, profile.mirrors) == (2, ("docker.io",), {})
    text = """
    [registries]
    pulls = 4
    plain_http = ["registry.example.org:5000"]
    [mirrors]
    "docker.io" = "mirror.example.org/dockerhub"
    "ghcr.io/own/app" = "localhost:5000"
    """
    _write(rootdir, text)
    profile = load_profile("site", rootdir)
    assert profile.registries.plain_http == ("registry.example.org:5000",)
    assert profile.mirrors["docker.io"] == "mirror.example.org/dockerhub"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[registries]\npulls = 0", "registries.pulls"),
        ("[registries]\nlogin = ['https://ghcr.io']", "'https://ghcr.io' is no host"),
        ("[registries]\nplain_htp = []", "did you mean 'plain_http'"),
        ("[mirrors]\n'docker.io' = 'https://m.org'", "'https://m.org' is not HOST or HOST/PATH"),
        ("[mirrors]\n'library/debian' = 'm.org'", "'library/debian' is not HOST"),
        ("[mirrors]\n'docker.io/' = 'm.org'", "'docker.io/' is not HOST"),
        ("[mirrors]\n'docker.io' = 3", "mirrors.docker.io"),
    ],
)
def test_wrong_registries_and_mirrors(rootdir, text, word):
    assert word in _error(rootdir, text)


def test_a_profile_that_extends_another(rootdir):
    _write(rootdir, "[sandbox]\nflavours = ['userns', 'setuid']\n[scratch]\npath = '/a'", "base")
    _write(rootdir, "extends = 'base'\n[sandbox]\nflavours = ['setuid']\n[scratch]\nstage_images = 'never'")
    profile = load_profile("site", rootdir)
    assert (profile.name, profile.sandbox.flavours) == ("site", ("setuid",))
    assert (profile.scratch.path, profile.scratch.stage_images) == ("/a", "never")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("3", "extends: must be the name"),
        ("'../site'", "extends: cluster '../site' is no name"),
        ("'locl'", "extends: there is no cluster profile 'locl' (did you mean 'local'?)"),
        ("'site'", "extends: 'site' extends another profile itself"),
    ],
)
def test_what_cannot_be_extended(rootdir, value, says):
    assert says in _error(rootdir, f"extends = {value}")
