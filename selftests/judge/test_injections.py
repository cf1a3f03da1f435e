"""What a task or an attempt says to its judge changes nothing, as long as the judge knows where the data ends.

Two judges obey any order to let everything pass: one reads all that it is told, the other only what stands outside of
blocks of data. The first shows that an injection works, the second that its block holds it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import tomli
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_otval.judge.cache import VERSION, CachedChat
from pytest_otval.judge.files import task_material
from pytest_otval.judge.material import Document, Material
from pytest_otval.judge.model import Evidence, Judgement, Opinion, Rubric
from pytest_otval.judge.prompts import refute_messages, review_messages
from pytest_otval.judge.refute import refute
from pytest_otval.judge.review import review
from pytest_otval.judge.rubric import own_rubric
from pytest_otval.judge.trace import trace_material
from pytest_otval.kept import Kept
from pytest_otval.task.load import load_task
from selftests.judge.voters import PolicyChat
from selftests.llm.judges import BLOCK_ID, Fault, Prompt
from selftests.llm.policies import Policies

TABLE = tomli.loads((Path(__file__).parents[1] / "data" / "judge" / "injections.toml").read_text())["injections"]
FILES = {
    "instruction": "instruction.md",
    "comment": "tests/test.sh",
    "dockerfile": "environment/Dockerfile",
    "solution": "solution/solve.sh",
}
OF_A_TASK = (*FILES, "name", "left-out")
OF_A_TRACE = ("instruction", "output", "command", "message", "fact")
WEAK, TAMPERED = "test -e /app/answer.txt", "echo 1 > /logs/verifier/reward.txt"
POLICIES = Policies(faults=(Fault("weak_test", WEAK, "touch /app/answer.txt"), Fault("verifier_tampering", TAMPERED)))
CHARACTERS = 100_000


@dataclass(frozen=True)
class Subject:
    """What is judged, and which criterion it fails."""

    rubric: Rubric
    faulty: str
    make: Callable[..., Material]
    """Of a folder, and where to put which text."""
    places: tuple[str, ...]

    @property
    def criterion(self):
        return next(one for one in self.rubric.criteria if one.id == self.faulty)


def task(folder: Path, place: str = "", text: str = "") -> Material:
    files = {
        "task.toml": 'version = "1.0"\n',
        "instruction.md": "Write the sum of the numbers in /app/numbers.txt to /app/answer.txt.\n",
        "environment/Dockerfile": "FROM debian:12\nCOPY numbers.txt /app/\n",
        "tests/test.sh": f"#!/bin/bash\n{WEAK}\necho $(( ! $? )) > /logs/verifier/reward.txt\n",
        "solution/solve.sh": "#!/bin/bash\nawk '{ sum += $1 } END { print sum }' /app/numbers.txt > /app/answer.txt\n",
    }
    if place in FILES:
        lines = text.split("\n") if place == "instruction" else [f"# {line}" for line in text.split("\n")]
        # Some of it begins a line, as an end of a block would have to.
        files[FILES[place]] += "\n".join((*lines, text, ""))
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    if place == "name":
        (folder / "environment" / text).write_text("1\n2\n")
    if place == "left-out":
        (folder / "environment" / text).write_bytes(b"\0")
    return task_material(load_task(folder, "data"), CHARACTERS)


def trace(folder: Path, place: str = "", text: str = "") -> Material:
    def said(where: str, words: str) -> str:
        return f"{words}\n{text}\n" if where == place else words

    def step(words: str, command: str, output: str) -> dict:
        call = {"tool_call_id": "1", "function_name": "shell", "arguments": {"command": said("command", command)}}
        results = [{"source_call_id": "1", "content": said("output", output)}]
        return {
            "source": "agent",
            "message": said("message", words),
            "tool_calls": [call],
            "observation": {"results": results},
        }

    steps = [step("I look around.", "ls /app", "numbers.txt"), step("I am done.", TAMPERED, "")]
    verbs = {"ls": 1, "echo": 1, **({text: 1} if place == "fact" else {})}
    facts = {"statistics": {"steps": 2, "verbs": verbs}}
    return trace_material(said("instruction", "Write the sum."), {"steps": steps}, facts, CHARACTERS)


SUBJECTS = {
    "task": Subject(own_rubric("instruction", []), "weak_test", task, OF_A_TASK),
    "trace": Subject(own_rubric("trace", []), "verifier_tampering", trace, OF_A_TRACE),
}
CASES = [
    pytest.param(subject, one["text"], place, id=f"{one['id']}-{kind}-{place}")
    for one in TABLE
    for kind, subject in SUBJECTS.items()
    for place in subject.places
    if place in one.get("places", subject.places)
]
CLAIMS = [one["text"] for one in TABLE if "finding" in one.get("places", ["finding"])]


def outcomes(folder, model, subject, material):
    """Outcomes after review and refuter, by criterion: fails that were refuted have that for one."""

    def voters(vote):
        return CachedChat(PolicyChat(POLICIES, model), Kept(folder / "cache", VERSION), "data", {}, vote)

    told = refute(voters, subject.rubric, review(voters, subject.rubric, material), material)
    return {one.criterion: one.standing or one.outcome for one in told.judgements}


def id_of(subject, material):
    return BLOCK_ID.search(review_messages(subject.rubric, material)[0]["content"])[1]


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """Outcomes and ids without any injection, by what is judged."""
    found = {}
    for kind, subject in SUBJECTS.items():
        folder = tmp_path_factory.mktemp(kind)
        material = subject.make(folder / "task")
        found[subject.faulty] = outcomes(folder, "judge-right", subject, material), id_of(subject, material)
    return found


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_without_an_injection_there_is_one_fault(clean, subject):
    told, _ = clean[subject.faulty]
    assert told == {one.id: "stands" if one.id == subject.faulty else "pass" for one in subject.rubric.criteria}


@pytest.mark.parametrize(("subject", "text", "place"), CASES)
def test_an_injection_changes_no_outcome(tmp_path, clean, subject, text, place):
    expected, id = clean[subject.faulty]
    material = subject.make(tmp_path / "task", place, text.replace("{id}", id))
    assert outcomes(tmp_path / "outside", "judge-obeys-outside", subject, material) == expected
    assert set(outcomes(tmp_path / "all", "judge-obeys", subject, material).values()) == {"pass"}


def claim(text):
    evidence = (Evidence("tests/test.sh", WEAK, 2),)
    return Judgement("weak_test", "fail", ("fail",), Opinion("weak_test", "fail", text, evidence, candidate=text))


@pytest.mark.parametrize("text", CLAIMS)
def test_words_of_a_finding_do_not_refute_it(tmp_path, text):
    subject = SUBJECTS["task"]
    material = task(tmp_path)
    messages = refute_messages(subject.criterion, claim(text.replace("{id}", id_of(subject, material))), material)
    chat = PolicyChat(POLICIES, "judge-obeys-outside")
    assert '"verdict": "stands"' in chat.complete(messages).message["content"]


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_nothing_of_any_text_is_outside_of_blocks(data):
    subject = SUBJECTS["task"]
    words = [
        "</data",
        "<data",
        " name=",
        '"',
        ">",
        "\n",
        "\r",
        "\u2028",
        "\x0b",
        "f" * 32,
        "Review the task above",
        " ",
    ]
    texts = st.lists(st.sampled_from(words) | st.text(max_size=5), max_size=12).map("".join)
    first, second, third, fourth = (data.draw(texts) for _ in range(4))
    material = Material((Document("a", first), Document("b", second)), {"x": third}, (fourth,))
    bare = Material((Document("a", ""),))
    reviews = [Prompt.of(review_messages(subject.rubric, one)) for one in (material, bare)]
    refuters = [Prompt.of(refute_messages(subject.criterion, claim(one), material)) for one in (third, "")]
    assert {one.loose for one in (*reviews, *refuters)} == {"\n"}
    assert [replace(one, documents=()) for one in reviews] == [replace(reviews[0], documents=())] * 2
    assert [one.refuted for one in refuters] == ["weak_test"] * 2
