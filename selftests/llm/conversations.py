"""Conversations in few words."""

from pytest_otval.llm.chat import Usage
from pytest_otval.llm.steps import Step


def step(command="", output="", status=0, prompt=100, completion=10, **more):
    """A command that ended, with its usage."""
    return Step(command, output, status if command else None, usage=Usage(prompt, completion), **more)


def conversation(*commands):
    return [step(command) for command in commands]
