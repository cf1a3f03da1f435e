"""A plugin as others write it: a stage, the agent it lets act, a check, and a column.

``pytest -p otval_example datasets/demo -m "static or vandal"`` runs it, with this file's folder on PYTHONPATH. What is
needed to list stages is imported at once; the rest when a stage is asked.
"""

from pytest_otval.stages.spec import Stage


def pytest_otval_stages():
    return [
        Stage("vandal", "otval_example:vandal_stage", "does destroying the workdir score at the bottom?", repeats=True)
    ]


def vandal_stage(machine, question):
    from pytest_otval.stages.trials import declared_scope, trial_stage

    return trial_stage(machine, question, machine.agent("vandal"), declared_scope(machine, question))


def pytest_otval_agents():
    return [Vandal()]


class Vandal:
    """Deletes whatever lies in the workdir."""

    name = "vandal"
    version = "1"
    model = ""
    acts = True
    side = "high"

    def check(self, task, step):
        """It can act on any task."""

    def binds(self, task, step, folder):
        """It brings nothing along."""
        return []

    def act(self, task, step, place):
        from pytest_otval.sandbox.base import Command

        argv = ["/bin/sh", "-c", "rm -rf -- ./* ./.[!.]*"]
        return place.run(Command(argv, place.log, place.env, place.user, place.workdir, place.seconds))


def pytest_otval_checks():
    from pytest_otval.checks.registry import Check
    from pytest_otval.core import Severity

    explains = "An instruction that says nothing of what it expects cannot be met."
    fix = "say in instruction.md what must be there in the end"
    return [Check("example-short-instruction", Severity.WARNING, "example", explains, fix, short_instructions)]


def short_instructions(context):
    from pytest_otval.checks.registry import Place

    instruction = context.source("instruction.md")
    words = len(instruction.text.split()) if instruction else 0
    if words < 1000:
        yield Place("instruction.md", f"only {words} words")


def pytest_otval_report_columns():
    from pytest_otval.report.columns import Column

    return [Column("Verifier share", verifier_share)]


def verifier_share(line):
    total = line["seconds"].get("total")
    return f"{line['seconds'].get('verifier', 0) / total:.0%}" if total else ""
