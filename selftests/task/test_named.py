import pytest

from pytest_otval.task.named import paths_named


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("Write `/app/out.txt`, then /srv/a/b.", ["/app/out.txt", "/srv/a/b"]),
        ("/root/.config/foo.toml", ["/root/.config/foo.toml"]),
        ("/home/u/.ssh/config", ["/home/u/.ssh/config"]),
        ("/srv/app/.env", ["/srv/app/.env"]),
        ("/library/books.json and /libs/x", ["/library/books.json", "/libs/x"]),
        ("/usr/bin/python3 /etc/passwd /lib64/x /tests/test.sh /logs/x /proc/1", []),
        ("https://example.org/a/b x/y/z /a/../b", []),
        ("/app/x /app/x", ["/app/x"]),
    ],
)
def test_paths(text, paths):
    assert paths_named(text) == paths
