import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images.bases import Bases, own_sources
from pytest_otval.images.planning import Tally, UnresolvedSource, instruction_of


@pytest.mark.parametrize(
    ("headline", "instruction"),
    [
        ("environment/Dockerfile:3: COPY: 'a' is not in the build context", "COPY"),
        ("environment/Dockerfile:3: COPY --link is not supported yet", "COPY --link"),
        ("environment/Dockerfile:12: ADD git@x:y/z is not supported yet", "ADD"),
        ("environment/Dockerfile:1: FROM nowhere/x:1: no such host", "FROM"),
        ("environment/Dockerfile:10: unknown instruction: {PHASE}", ""),
        ("docker_image x: no such host", ""),
        ("a:1: b\n:2: RUN", ""),
        ("", ""),
    ],
)
def test_instruction_of_a_headline(headline, instruction):
    assert instruction_of(headline) == instruction


def test_tally():
    tally = Tally()
    for keys in (["a"], ["a", "b"], ["c"]):
        tally.add(keys)
    tally.refuse(Conclusion("build-failed", "environment/Dockerfile:3: COPY: x"))
    tally.refuse(Conclusion("compose", "environment/docker-compose.yaml needs docker compose"))
    tally.refuse(Conclusion("bad-task", "there is no task.toml"))
    assert (tally.environments, tally.asked, tally.planned, tally.share) == (6, 4, 3, 75.0)
    assert tally.keys == {"a", "b", "c"}
    assert tally.refusals[("build-failed", "COPY")] == 1
    assert Tally().share == 100.0


def test_unresolved_base_stands_for_itself_where_nothing_else_answers(tmp_path, profile, silent_registry):
    own = own_sources(tmp_path / "store", profile, registry=silent_registry)
    bases = Bases(profile, [*own, UnresolvedSource()])
    assert bases.resolve("ghcr.io/owner/name:1", "FROM").name == "unresolved:ghcr.io/owner/name:1"
    assert bases.resolve("debian:12", "FROM").name.startswith("bootstrap:bookworm@")
    with pytest.raises(Conclusion, match="build-failed"):
        bases.resolve("{{image}}", "FROM")
