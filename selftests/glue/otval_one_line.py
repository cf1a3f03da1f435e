"""A plugin with an agent of its own for the teacher stage: the model is asked once, for one command line."""


def pytest_otval_model_agents():
    return [OneLine()]


class OneLine:
    """Runs whatever the model answers."""

    name = "one-line"
    version = "1"

    def __init__(self):
        self.env = {"PAGER": "cat"}

    def solve(self, session):
        """Ask, run, and say why it ended: one of ``pytest_otval.llm.session.STOPS``."""
        words = "Answer with one line of bash, and nothing else.\n\n" + session.instruction
        reply = session.ask([{"role": "user", "content": words}])
        session.run(str(reply.message["content"]))
        return "submitted"
