"""A judge outside of a run: it reviews what it is shown, and is told to refute what it finds."""

from __future__ import annotations

import argparse
from contextlib import closing

from pytest_otval.core import Conclusion
from pytest_otval.judge.cache import VERSION, CachedChat
from pytest_otval.judge.material import Material
from pytest_otval.judge.model import Review, Rubric
from pytest_otval.judge.refute import refute
from pytest_otval.judge.review import UnreadableError, review
from pytest_otval.kept import Kept
from pytest_otval.llm.chat import ContextOverflowError, EndpointError
from pytest_otval.llm.client import EndpointChat, numbered_chat, section_for
from pytest_otval.profile import load_profile
from pytest_otval.stages.judging import characters_for
from pytest_otval.workspace import Workspace

AT_A_TIME = 4
"""Reviews, where the profile does not say how many requests an endpoint takes."""
GROUP = "calibrate"
"""Of cached answers."""


class Panel:
    """One model with one rubric; several threads may use it."""

    def __init__(self, arguments: argparse.Namespace, rubric: Rubric, workspace: Workspace) -> None:
        """Raises OtvalUsageError: the model cannot be asked, or its context is too short."""
        self._name = arguments.judge
        self._section = section_for(load_profile(arguments.cluster), self._name, arguments.base_url)
        self._rubric = rubric
        self._votes = arguments.votes
        self._cache = workspace.cache / "judge"
        self.characters = characters_for(rubric, self._section)
        """Of what is shown at a time."""
        self.model = self._chat(0).model
        """Its name, as the endpoint knows it."""
        self.endpoint = self._section.base_url
        self.at_a_time = self._section.concurrency or AT_A_TIME

    def review(self, material: Material) -> Review | None:
        """Return the review, every fail with its standing; None where the answer cannot be read.

        No trial is run. Raises Conclusion ``endpoint-failed``.
        """
        with closing(Kept(self._cache, VERSION)) as kept:
            settings = self._section.of_answers

            def voter(vote: int) -> CachedChat:
                return CachedChat(self._chat(vote), kept, GROUP, settings, vote)

            try:
                return refute(voter, self._rubric, review(voter, self._rubric, material, votes=self._votes), material)
            except UnreadableError:
                return None
            except (EndpointError, ContextOverflowError) as error:
                words = "what it answered is kept: give the command again"
                raise Conclusion("endpoint-failed", f"{error}; {words}") from None

    def _chat(self, vote: int) -> EndpointChat:
        return numbered_chat(self._name, self._section, None, vote)
