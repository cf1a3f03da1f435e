"""The registry client against a registry on loopback."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from pytest_otval.images.credentials import Credentials
from pytest_otval.images.oci import NoAnswerError, NotThereError, RefusedError
from pytest_otval.images.reference import Mirrors, parse_reference
from pytest_otval.images.registry import Registry
from pytest_otval.images.transport import TRIES
from pytest_otval.waiting import MAX_WAIT
from selftests.images.oci_registry import OciRegistry, TinyImage, digest_of, layer

CONFIG = {"Env": ["A=b=c", "PATH=/x"], "WorkingDir": "/app", "Cmd": ["run"], "User": ""}


@pytest.fixture
def image():
    return TinyImage(CONFIG, [layer({"a": b"one"}), layer({"b": b"two"})])


@pytest.fixture
def server():
    with OciRegistry("bearer") as registry:
        yield registry


@pytest.fixture
def waited():
    return []


@pytest.fixture
def client(server, waited):
    """Make a client that does not really wait between two tries."""
    return lambda **options: Registry(frozenset([server.host]), sleep=waited.append, **options)


@pytest.fixture(autouse=True)
def no_login(monkeypatch, tmp_path):
    monkeypatch.setenv("APPTAINER_CONFIGDIR", str(tmp_path / "none"))
    for name in ("APPTAINER_DOCKER_USERNAME", "APPTAINER_DOCKER_PASSWORD", "DOCKER_USERNAME", "DOCKER_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


def test_tag_becomes_digest_and_configuration(server, client, image):
    found = client().resolve(parse_reference(server.push(image)))
    assert found.digest == image.digest
    assert (found.config.env, found.config.workdir) == ({"A": "b=c", "PATH": "/x"}, "/app")
    assert (found.config.cmd, found.config.user) == (("run",), None)
    assert ("HEAD", "/v2/lib/app/manifests/1") in server.seen
    assert server.count("/token") == 1
    assert server.count("/blobs/") == 1, "no layer"


def test_pinned_name_asks_for_no_tag(server, client, image):
    name = f"{server.push(image)}@{image.digest}"
    assert client().resolve(parse_reference(name)).digest == image.digest
    assert server.count("manifests/1") == 0


def test_image_without_an_index(server, client, image):
    server.push(image)
    server.content["/v2/lib/app/manifests/1"] = image.manifest
    found = client().resolve(parse_reference(f"{server.host}/lib/app:1"))
    assert found.digest == digest_of(image.manifest)


def test_download_writes_a_layout(server, client, image, tmp_path):
    server.push(image)
    client().download(parse_reference(f"{server.host}/lib/app@{image.digest}"), tmp_path / "layout")
    entry = json.loads((tmp_path / "layout/index.json").read_text())["manifests"][0]
    assert entry["digest"] == digest_of(image.manifest)
    blobs = {path.name: path.read_bytes() for path in (tmp_path / "layout/blobs/sha256").iterdir()}
    assert all(digest_of(data) == f"sha256:{name}" for name, data in blobs.items())
    assert len(blobs) == 4, "manifest, configuration, two layers"


@pytest.mark.parametrize("what", ["tag", "repository"])
def test_what_is_not_there(server, client, image, what):
    server.push(image)
    name = {"tag": "lib/app:2", "repository": "lib/none:1"}[what]
    with pytest.raises(NotThereError, match=f"127.0.0.1:\\d+ has no .*{name}"):
        client().resolve(parse_reference(f"{server.host}/{name}"))
    assert server.count("manifests/") <= 2, "asked without and with a token"


@pytest.mark.parametrize("indexed", [True, False])
def test_foreign_architecture(server, client, indexed):
    foreign = TinyImage(CONFIG, [], architecture="mips")
    server.push(foreign)
    if not indexed:
        server.content["/v2/lib/app/manifests/1"] = foreign.manifest
    with pytest.raises(RefusedError, match="linux/mips"):
        client().resolve(parse_reference(f"{server.host}/lib/app:1"))


@pytest.mark.parametrize(
    ("status", "error", "tries"),
    [(403, RefusedError, 1), (418, RefusedError, 1), (429, RefusedError, TRIES), (503, NoAnswerError, TRIES)],
)
def test_statuses(server, client, image, waited, status, error, tries):
    name = server.push(image)
    server.fail("manifests/1", status)
    ask = client()
    with pytest.raises(error, match=r"127\.0\.0\.1"):
        ask.resolve(parse_reference(name))
    assert (server.count("manifests/1"), len(waited)) == (1 + tries, tries - 1), "once before the token"
    assert waited == sorted(waited), "longer each time"
    with pytest.raises((error, NotThereError)):
        ask.resolve(parse_reference(f"{server.host}/lib/app:2"))
    asked_again = server.count("manifests/2") > 0
    assert asked_again is (tries == 1), "who is no use however often it is asked is left alone"


@pytest.mark.parametrize("what", [429, 500, 502, 503, 504, "cut", "reset"])
@pytest.mark.parametrize("where", ["/token", "/manifests/sha256", "/blobs/"])
def test_what_passes_is_tried_again(server, client, image, waited, what, where, tmp_path):
    server.push(image)
    server.fail(where, what, times=2)
    client().download(parse_reference(f"{server.host}/lib/app@{image.digest}"), tmp_path / "layout")
    assert len(waited) == 2
    assert len(list((tmp_path / "layout/blobs/sha256").iterdir())) == 4


@pytest.mark.parametrize(
    ("asked", "seconds"), [("7", 7.0), ("0", 0.0), ("86400", MAX_WAIT), ("soon", None), ("-1", None), ("", None)]
)
def test_retry_after(server, client, image, waited, asked, seconds):
    name = server.push(image)
    server.fail("manifests/1", 429, times=1, Retry_After=asked)
    client().resolve(parse_reference(name))
    assert len(waited) == 1
    assert waited[0] == seconds if seconds is not None else 0.5 <= waited[0] <= 1


def test_retry_after_a_date(server, client, image, waited):
    name = server.push(image)
    server.fail("manifests/1", 503, times=1, Retry_After=format_datetime(datetime.now(UTC) + timedelta(seconds=30)))
    client().resolve(parse_reference(name))
    assert 20 < waited[0] <= 30


def test_other_bytes_are_refused(server, client, image, tmp_path):
    name = server.push(image)
    server.fail("/blobs/", "other bytes")
    with pytest.raises(RefusedError, match="other bytes"):
        client().resolve(parse_reference(name))
    with pytest.raises(RefusedError, match="other bytes"):
        client().download(parse_reference(f"{server.host}/lib/app@{image.digest}"), tmp_path)


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"\xff",
        b"{}",
        b'{"config": 3}',
        b"[" * 100_000,
        b'{"manifests": 3}',
        b'{"manifests": []}',
        b'{"config": {"digest": "../../etc/passwd"}, "layers": []}',
        b'{"config": {"digest": "sha256:' + b"0" * 64 + b'"}, "layers": {"a": "\x1b"}}',
        b" " * (5 << 20),
    ],
    ids=range(10),
)
def test_odd_answers_are_refused_in_one_line(server, client, body):
    server.content["/v2/lib/app/manifests/1"] = server.content[f"/v2/lib/app/manifests/{digest_of(body)}"] = body
    with pytest.raises(RefusedError) as caught:
        client().resolve(parse_reference(f"{server.host}/lib/app:1"))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "config",
    [{"Env": "A=1"}, {"Env": [3]}, {"WorkingDir": {}}, {"User": "a\0b"}, {"Labels": []}, {"Labels": {"\x1b[2J": 3}}],
)
def test_odd_configurations_are_refused(server, client, config):
    with pytest.raises(RefusedError, match="its configuration is not one") as caught:
        client().resolve(parse_reference(server.push(TinyImage(config, []))))
    assert str(caught.value).isprintable()


def test_index_that_leads_in_circles(server, client):
    body = b'{"manifests": []}'
    for _ in range(6):
        entry = {"digest": digest_of(body), "size": len(body)}
        server.content[f"/v2/lib/app/manifests/{digest_of(body)}"] = body
        body = json.dumps({"manifests": [entry]}).encode()
    server.content["/v2/lib/app/manifests/1"] = server.content[f"/v2/lib/app/manifests/{digest_of(body)}"] = body
    with pytest.raises(RefusedError, match="index after index"):
        client().resolve(parse_reference(f"{server.host}/lib/app:1"))


def test_nobody_listens_and_is_not_waited_for(server, client, waited):
    server.stop()
    ask = client()
    for _ in range(2):
        with pytest.raises(NoAnswerError, match=r"127\.0\.0\.1"):
            ask.resolve(parse_reference(f"{server.host}/lib/app:1"))
    assert waited == []


def test_who_is_silent_too_long(server, client, image):
    name = server.push(image)
    server.fail("manifests/1", "slow")
    with pytest.raises(NoAnswerError, match="timed out"):
        client(seconds=0.1).resolve(parse_reference(name))


def test_token_that_got_too_old_is_renewed(server, client, image):
    name = server.push(image)
    ask = client()
    ask.resolve(parse_reference(name))
    server.token = "another"
    ask.resolve(parse_reference(name))
    assert server.count("/token") == 2


def test_authorization_follows_no_redirection(server, client, image, tmp_path):
    server.push(image)
    with OciRegistry() as storage:
        storage.push(image)
        for digest in image.blobs:
            path = f"/v2/lib/app/blobs/{digest}"
            server.fail(path, 307, Location=f"http://{storage.host}{path}")
        client().download(parse_reference(f"{server.host}/lib/app@{image.digest}"), tmp_path / "layout")
        assert len(storage.shown) == 4, "the configuration twice"
        assert {*storage.shown} == {""}
    assert f"Bearer {server.token}" in server.shown


@pytest.mark.parametrize("realm", ["", "ftp://x/", "http://a b/", "http://[", "http://\u00e9/", "file:///etc/passwd"])
def test_odd_places_of_tokens(server, client, realm, waited):
    challenge = f'Bearer realm="{realm}"'
    with pytest.raises((RefusedError, NoAnswerError)) as caught:
        client()._token(parse_reference(f"{server.host}/lib/app:1"), challenge, "")
    assert str(caught.value).isprintable()
    assert waited == []


class TestLogins:
    PASSWORD = "canary-password"

    @pytest.fixture(params=["basic", "bearer"])
    def closed(self, request, image):
        with OciRegistry(request.param, ("me", self.PASSWORD)) as registry:
            registry.push(image)
            yield registry

    def ask(self, registry, hosts=()):
        client = Registry(frozenset([registry.host]), Credentials(hosts), sleep=lambda seconds: None)
        return client.resolve(parse_reference(f"{registry.host}/lib/app:1"))

    def test_nobody_gets_in_without(self, closed):
        with pytest.raises(RefusedError, match=r"wants a log-in.*apptainer registry login"):
            self.ask(closed)

    def test_environment(self, closed, monkeypatch, image):
        monkeypatch.setenv("APPTAINER_DOCKER_USERNAME", "me")
        monkeypatch.setenv("APPTAINER_DOCKER_PASSWORD", self.PASSWORD)
        assert self.ask(closed, [closed.host]).digest == image.digest

    def test_environment_is_not_for_whoever_a_task_names(self, closed, monkeypatch):
        monkeypatch.setenv("APPTAINER_DOCKER_USERNAME", "me")
        monkeypatch.setenv("APPTAINER_DOCKER_PASSWORD", self.PASSWORD)
        with pytest.raises(RefusedError):
            self.ask(closed, ["docker.io"])
        assert {*closed.shown} == {""}

    def test_wrong_password_is_shown_nowhere(self, closed, monkeypatch):
        monkeypatch.setenv("APPTAINER_DOCKER_USERNAME", "me")
        monkeypatch.setenv("APPTAINER_DOCKER_PASSWORD", "canary-wrong")
        with pytest.raises(RefusedError) as caught:
            self.ask(closed, [closed.host])
        assert "canary" not in str(caught.value)

    def test_token_is_not_asked_for_without_tls_unless_the_registry_is(self):
        challenge = 'Bearer realm="http://elsewhere.example/token"'
        with pytest.raises(RefusedError, match="sends for a token"):
            Registry()._token(parse_reference("quay.io/a:1"), challenge, "Basic canary")


class TestMirrors:
    @pytest.fixture
    def mirror(self, image):
        with OciRegistry() as registry:
            registry.push(image, "hub/lib/app")
            yield registry

    @pytest.fixture
    def ask(self, server, mirror, waited):
        return Registry(
            frozenset([server.host, mirror.host]),
            mirrors=Mirrors({server.host: f"{mirror.host}/hub"}),
            sleep=waited.append,
        )

    def test_mirror_answers_for_the_original(self, ask, server, image, tmp_path):
        assert ask.resolve(parse_reference(f"{server.host}/lib/app:1")).digest == image.digest
        ask.download(parse_reference(f"{server.host}/lib/app@{image.digest}"), tmp_path / "layout")
        assert server.seen == []

    def test_what_a_mirror_lacks_comes_from_the_original(self, ask, server, image, mirror, tmp_path):
        name = server.push(image, "lib/other")
        assert ask.resolve(parse_reference(name)).digest == image.digest
        assert mirror.count("/hub/lib/other/") == 1
        mirror.content = {path: data for path, data in mirror.content.items() if "blobs" not in path}
        server.push(image)
        ask.download(parse_reference(f"{server.host}/lib/app@{image.digest}"), tmp_path / "layout")
        assert len(list((tmp_path / "layout/blobs/sha256").iterdir())) == 4

    @pytest.mark.parametrize("fault", [401, 403, 429, 500, "other bytes"])
    def test_mirror_in_trouble(self, ask, server, image, mirror, fault):
        name = server.push(image)
        mirror.fail("/hub/", fault)
        assert ask.resolve(parse_reference(name)).digest == image.digest

    def test_both_are_named_where_none_answers(self, ask, server, mirror):
        mirror.fail("/hub/", 403)
        with pytest.raises(NotThereError, match=f"{mirror.host} wants a log-in.*{server.host} has no"):
            ask.resolve(parse_reference(f"{server.host}/lib/app:2"))
