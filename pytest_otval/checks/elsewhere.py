"""Findings that no check function makes: of reading task.toml and dataset.toml, of whole datasets, of built images, of
allowances.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_otval.core import Severity

E, W, I = Severity.ERROR, Severity.WARNING, Severity.INFO  # noqa: E741


@dataclass(frozen=True, slots=True)
class Told:
    """What such a finding means."""

    id: str
    severity: Severity
    """The worst it can have."""
    family: str
    explains: str
    fix: str


ELSEWHERE = {
    told.id: told
    for told in (
        Told("toml-missing", E, "toml", "A folder without task.toml is no task.", "add one: an empty file is valid"),
        Told("toml-unreadable", E, "toml", "task.toml is read as a small regular file only.", "make it one"),
        Told("toml-parse", E, "toml", "Harbor reads task.toml as TOML 1.0 in UTF-8.", "correct the line"),
        Told(
            "toml-invalid",
            E,
            "toml",
            "Harbor's schema refuses the value, and with it the task.",
            "write what the message asks for",
        ),
        Told(
            "toml-unknown-field",
            E,
            "toml",
            "Harbor ignores keys it does not know without a word; an error where the key is nearly a known one.",
            "correct the name, or move notes to [metadata]",
        ),
        Told(
            "toml-misplaced-artifacts",
            E,
            "toml",
            "Artifacts that are listed in the wrong table are not carried over.",
            "write `artifacts` before the first [table], or in its [[steps]]",
        ),
        Told("toml-deprecated", I, "toml", "An old spelling still works.", "write the new one; --otval-fix does"),
        Told("toml-lost-value", E, "toml", "Harbor takes another value in place of this one.", "drop one of the two"),
        Told(
            "toml-coerced", E, "toml", "Harbor reads the value as one of another type.", "write it in the type it has"
        ),
        Told("toml-out-of-range", E, "toml", "No trial can run with such a value.", "write a number in range"),
        Told(
            "toml-env-literal",
            W,
            "toml",
            "Only a value that is ${VAR} as a whole is replaced.",
            "make the template the whole value",
        ),
        Told(
            "toml-env-no-default",
            W,
            "toml",
            "On a host without the variable no trial of the task runs.",
            "give it a default: ${VAR:-value}",
        ),
        Told(
            "toml-allowlist-empty",
            W,
            "toml",
            "An allowlist without hosts is no network at all.",
            "fill `allowed_hosts`, or write 'no-network'",
        ),
        Told("toml-relative-path", E, "toml", "A workdir is a path from the root.", "write it from /"),
        Told("toml-schema-version", W, "toml", "Harbor never compares the version.", 'write schema_version = "1.4"'),
        Told(
            "toml-timeouts-present",
            W,
            "toml",
            "Without [agent].timeout_sec an agent may run for ever.",
            "write [agent] timeout_sec",
        ),
        Told(
            "toml-artifact-overlap",
            W,
            "toml",
            "Of two artifacts with one place Harbor skips the later.",
            "give it another `destination`",
        ),
        Told(
            "toml-step-timeout",
            E,
            "toml",
            "A step's verifier does not inherit the task's time limit and gets 600 seconds.",
            "write [steps.verifier] timeout_sec",
        ),
        Told("ds-name", E, "dataset", "Node ids are made of names.", "rename the folder: letters, digits and . _ -"),
        Told("ds-unreadable", E, "dataset", "dataset.toml is read as a regular file only.", "make it one"),
        Told("ds-parse", E, "dataset", "What is no TOML says nothing.", "correct the line"),
        Told(
            "ds-invalid", E, "dataset", "In place of a wrong value the default counts.", "write a value that is right"
        ),
        Told("ds-unknown-field", E, "dataset", "A setting that does not exist has no effect.", "correct the name"),
        Told(
            "ds-manifest",
            W,
            "dataset",
            "Harbor cannot read such a manifest.",
            "write names as org/name and digests as sha256:...",
        ),
        Told(
            "ds-known-bad-expired",
            W,
            "dataset",
            "An expired entry no longer applies.",
            "repair the task, or set a new date",
        ),
        Told(
            "ds-accepted-expired",
            W,
            "dataset",
            "An expired entry no longer accepts an attack.",
            "close the way it takes, or set a new date",
        ),
        Told(
            "ds-accepted-unknown",
            W,
            "dataset",
            "An entry for an attack that is not in the battery accepts nothing.",
            "write the id as the table in docs/adversary.md has it",
        ),
        Told(
            "ds-duplicate-task",
            W,
            "dataset",
            "Tasks with the same content count twice, in training and in every average.",
            "remove all but one",
        ),
        Told(
            "ds-duplicate-name",
            E,
            "dataset",
            "[task].name is what a published task is found by, so the later one takes the other's place.",
            "give each task a name of its own",
        ),
        Told(
            "ds-same-instruction",
            I,
            "dataset",
            "Tasks that ask for the same thing may be meant as one.",
            "say in each what is different, or remove all but one",
        ),
        Told(
            "ds-no-task-toml",
            W,
            "dataset",
            "A folder without task.toml is skipped without a word.",
            "add task.toml, or move the folder out of tasks/",
        ),
        Told(
            "ds-base-images",
            I,
            "dataset",
            "Each base image has to be pulled and kept.",
            "build tasks on few bases where their subject allows it",
        ),
        Told(
            "ds-images-absent",
            I,
            "dataset",
            "A base image that is not in the store needs a registry when the first task is built on it.",
            "make them in advance where nodes have no network",
        ),
        Told(
            "ds-licence",
            I,
            "dataset",
            "Without a licence nobody may pass the dataset on.",
            "add a LICENSE file, or `license` under [dataset] or [metadata]",
        ),
        Told(
            "ds-not-all-read",
            I,
            "dataset",
            "What is said of the dataset as a whole covers only the tasks that were read.",
            "unpack the dataset to have all of it looked at",
        ),
        Told(
            "image-has-tests",
            W,
            "image",
            "The agent can read, in its image, files that its work is judged by.",
            "remove the file in the RUN that brings it, unless the agent is meant to see these tests",
        ),
        Told(
            "image-has-solution",
            E,
            "image",
            "The agent can read the reference solution in its image.",
            "remove the file in the RUN that brings it",
        ),
        Told(
            "image-has-gold-lines",
            E,
            "image",
            "The agent can copy what the solution's patch adds: it is applied, or another file of the image holds it.",
            "build the image from the state before the fix, and remove copies of the state behind it",
        ),
        Told(
            "ds-levels-unknown",
            W,
            "dataset",
            "An entry for a task that the dataset does not have sets no isolation level.",
            "write the task's name, or remove the entry",
        ),
        Told(
            "image-has-expected",
            W,
            "image",
            "An agent that searches its image finds the very value that the tests expect.",
            "remove the file in the RUN that brings it, or let the tests work the value out",
        ),
        Told(
            "image-git-history",
            E,
            "image",
            "git show and git log -S find in the image's repository what the solution's patch adds.",
            "rm -rf .git; or drop branches, tags, stashes, remotes and the reflog, and run git gc --prune=now",
        ),
        Told(
            "image-stale-pyc",
            W,
            "image",
            "Bytecode can be read back into source, and this one has the name of a test file that is not there.",
            "delete the __pycache__ folder in the RUN that makes it, or set PYTHONDONTWRITEBYTECODE=1 there",
        ),
        Told(
            "image-reward-there",
            W,
            "image",
            "Where the verifier ends early, a reward that was there before may be taken for its answer.",
            "let nothing but the test script write to /logs",
        ),
        Told(
            "image-not-read",
            I,
            "image",
            "What an image holds beyond these bounds may give answers away, and nobody looked.",
            "keep what the agent does not need out of the image",
        ),
        Told(
            "weak-in-process",
            W,
            "attack",
            "Code of the product runs in the process of the tests and decides what they report; no container stops it.",
            "what the finding says of the attack; or [otval.accepted.ATTACK] in dataset.toml",
        ),
        Told(
            "allow-no-reason",
            W,
            "allow",
            "A finding is only allowed for a reason that the next reader can judge.",
            "write: otval: allow CHECK-ID because REASON",
        ),
        Told("allow-unknown", W, "allow", "There is no check of this id.", "python -m pytest_otval checks lists all"),
        Told("allow-unused", W, "allow", "It allows what is not there, or no longer.", "remove it"),
        Told("allow-expired", W, "allow", "An expired entry allows nothing.", "repair the tasks, or set a new date"),
    )
}
"""By id."""

AT_BUILD = frozenset(name for name, told in ELSEWHERE.items() if told.family == "image")
"""Findings of the build stage about the image; all others are of the static stage."""

NEVER_ALLOWED = frozenset(
    {"toml-missing", "toml-unreadable", "toml-parse", "toml-invalid"}
    | {name for name, told in ELSEWHERE.items() if told.family in ("allow", "attack")}
)
"""Findings that cannot be allowed: no question can be asked of a task whose task.toml says nothing, and attacks are
accepted in dataset.toml."""
