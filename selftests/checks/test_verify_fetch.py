"""Which commands ask another machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.checks.verify_fetch import fetches, remote, shown, unpinned


@pytest.mark.parametrize(
    "command",
    [
        "curl -sSL https://example.org/x",
        "timeout 9 wget -q http://example.org",
        "git clone git@github.com:a/b.git",
        "python3 -m pip install pytest",
        "pip install -r requirements.txt",
        "uv pip install a",
        "uv run --with a python x.py",
        "uvx ruff",
        "npx -y jest",
        "npx jest@29 --ci",
        "npm ci",
        "go install a.org/b@latest",
        "go get -t .",
        "cargo install ripgrep",
        "apt-get install -y curl",
        "gradle --refresh-dependencies test",
        "gem install rspec",
    ],
)
def test_what_fetches(command):
    assert fetches(command.split())


@pytest.mark.parametrize(
    "command",
    [
        "",
        "curl http://localhost:8000/",
        "curl http://user:pass@127.0.0.1/",
        "curl http://[::1]:80/ http://db:5432 http://a.local/ http://192.168.0.1/",
        "curl --help",
        "wget $URL",
        "git clone /srv/a.git",
        "git fetch origin",
        "pip install --no-index pytest",
        "pip install /tests/a.whl ./b .[dev] -e .",
        "pip --version",
        "uv run pytest",
        "npx jest --ci",
        "npm test",
        "npm run install",
        "go test ./...",
        "go install ./...",
        "cargo install --path .",
        "cargo build --offline",
        "mvn -o dependency:resolve",
        "apt-get install ./a.deb",
        "yarn --offline install",
    ],
)
def test_what_does_not(command):
    assert not fetches(command.split())


@pytest.mark.parametrize(
    ("command", "packages"),
    [
        ("pip install pytest a==1 'b>=2' c[x]", ["pytest", "c[x]"]),
        ("pip install -r r.txt --index-url https://x -t /opt d", ["d"]),
        ("uvx pytest", ["pytest"]),
        ("uvx --with pytest==8 pytest /tests", []),
        ("uvx --from kit==1 --with boto3,x==1 kit /tests", ["boto3"]),
        ("uv run --with=a --with b==1 x.py", ["a"]),
        ("npm install left-pad@1 @a/b right-pad", ["@a/b", "right-pad"]),
        ("npm ci", []),
        ("go install a.org/b@latest a.org/c@v1", ["a.org/b@latest"]),
        ("cargo install ripgrep", ["ripgrep"]),
        ("cargo install ripgrep --locked", []),
    ],
)
def test_packages_without_a_version(command, packages):
    assert unpinned([word.strip("'") for word in command.split()]) == packages


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python3 -m pip install -q --target /opt pytest", "pip install pytest"),
        ("uvx -p 3.12 --with a==1 b", "uvx a==1"),
        ("curl -sS https://a.org/x", "curl https://a.org/x"),
    ],
)
def test_how_a_command_is_shown(command, words):
    assert shown(command.split()) == words


WORDS = (
    "curl",
    "pip",
    "uvx",
    "npx",
    "git",
    "install",
    "clone",
    "-y",
    "--with",
    "-r",
    "https://",
    "https://a.",
    "@",
    "\0",
)


@given(st.lists(st.sampled_from(WORDS)))
def test_no_command_is_too_odd(words):
    fetches(words)
    unpinned(words)
    shown(words)


@given(st.text(alphabet="htps:/@.[]ab1\0 ", max_size=60))
def test_no_address_is_too_odd(text):
    remote(f"https://{text}")


def test_an_address_without_an_end_is_looked_at_once():
    assert not remote("git@" * 250_000)
    assert remote("git@" * 1000 + "example.org:a/b.git")
