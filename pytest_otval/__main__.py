"""``python -m pytest_otval COMMAND``: what is no test run. Commands import what they need when they are called."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.workspace import default_cluster


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 4 for wrong usage, 1 for what could not be done."""
    arguments = make_parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
    except OtvalUsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4
    except Conclusion as conclusion:
        print(f"error: {conclusion}", file=sys.stderr)
        if conclusion.log:
            print(conclusion.log, file=sys.stderr)
        return 1
    return status


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(prog="python -m pytest_otval", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_doctor(commands)
    _add_environment(commands)
    _add_image(commands)
    _add_runtime(commands)
    _add_dataset(commands)
    _add_upstream(commands)
    _add_contract(commands)
    _add_report(commands)
    _add_runs(commands)
    _add_isolation(commands)
    _add_harden(commands)
    _add_checks(commands)
    _add_models(commands)
    _add_judge(commands)
    return parser


def _add_doctor(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    doctor = commands.add_parser("doctor", help="try what this machine can do, and say what is missing")
    _add_cluster(doctor)
    doctor.add_argument("--json", action="store_true", help="print JSON in place of a table")
    doctor.add_argument("--jobs", action="store_true", help="also ask nodes, by a job of a minute in each partition")
    doctor.set_defaults(run=_doctor)


def _add_environment(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    environment = commands.add_parser(
        "environment", help="print what a shell needs at a site; set-up puts it in env.sh"
    )
    _add_cluster(environment)
    environment.set_defaults(run=_environment)


def _add_image(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from pytest_otval.cluster.image_command import add_arguments

    add_arguments(commands.add_parser("image", help="plan, make, list, check and publish images"), _add_cluster)


def _add_runtime(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from pytest_otval.cluster.runtime_command import add_arguments

    add_arguments(commands.add_parser("runtime", help="make, list and check runtimes"), _add_cluster)


def _add_dataset(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from pytest_otval.sources.inventory_command import add_inventory
    from pytest_otval.task.command import add_arguments

    add_inventory(
        add_arguments(commands.add_parser("dataset", help="pack and unpack datasets, and keep the inventory"))
    )


def _add_upstream(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from pytest_otval.sources.upstream_command import add_arguments

    add_arguments(commands.add_parser("upstream", help="bring repositories of others that datasets are made from"))


def _add_contract(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from pytest_otval.cluster.contract_command import add_arguments

    add_arguments(commands.add_parser("contract", help="show, compare, verify and update contracts"), _add_cluster)


def _add_report(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from pytest_otval.report.command import add_arguments, run_report

    report = commands.add_parser("report", help="make a run's reports from its ledger, or compare two runs")
    add_arguments(report)
    report.set_defaults(run=run_report)


def _add_runs(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    status = commands.add_parser("status", help="tell how a submitted run stands, and submit again what its jobs left")
    cancel = commands.add_parser("cancel", help="end the jobs of a submitted run")
    attach = commands.add_parser("attach", help="report what the jobs of a submitted run answer, as pytest does")
    for parser, run in ((status, _status), (cancel, _cancel), (attach, _attach)):
        parser.add_argument("folder", type=Path, metavar="RUN", help="the run folder")
        parser.set_defaults(run=run)
    attach.add_argument("words", nargs=argparse.REMAINDER, metavar="...", help="further words for pytest, such as -v")


def _add_isolation(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from pytest_otval.report.isolation import add_arguments, run_isolation

    isolation = commands.add_parser("isolation", help="tell or write the levels that --otval-isolation auto found")
    add_arguments(isolation)
    isolation.set_defaults(run=run_isolation)


def _add_harden(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    harden = commands.add_parser("harden", help="propose test scripts that do without what the agent may have changed")
    harden.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="tasks, datasets, or folders of them")
    harden.add_argument("--write", action="store_true", help="change the tasks (default: print a diff)")
    runtime = "the verifier's runtime of tasks that have none (default: python-verifier)"
    harden.add_argument("--runtime", metavar="NAME", default="python-verifier", help=runtime)
    harden.add_argument("--no-runtime", action="store_true", help="let tests run in the image's Python only")
    shebang = "let the runtime's bash run test.sh, which then runs nowhere without it"
    harden.add_argument("--shebang", action="store_true", help=shebang)
    harden.set_defaults(run=_harden)


def _add_checks(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    checks = commands.add_parser("checks", help="list the static checks, or explain one")
    checks.add_argument("id", nargs="?", metavar="ID", help="explain this one")
    checks.add_argument("--json", action="store_true", help="print JSON in place of text")
    checks.set_defaults(run=_checks)


def _add_models(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from pytest_otval.cluster.models_command import add_arguments

    add_arguments(commands.add_parser("models", help="bring, check and serve language models"), _add_cluster)


def _add_judge(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from pytest_otval.cluster.judge_command import add_arguments

    add_arguments(commands.add_parser("judge", help="calibrate a judge, and label what it found"), _add_cluster)


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster",
        metavar="NAME",
        default=default_cluster(),
        help="cluster profile (default: $OT_CLUSTER, else local)",
    )


def _doctor(arguments: argparse.Namespace) -> int:
    from pytest_otval.cluster.doctor import run_doctor

    return run_doctor(arguments.cluster, as_json=arguments.json, jobs=arguments.jobs)


def _status(arguments: argparse.Namespace) -> int:
    from pytest_otval.cluster.run_commands import status

    return status(arguments.folder.absolute())


def _cancel(arguments: argparse.Namespace) -> int:
    from pytest_otval.cluster.run_commands import cancel_run

    return cancel_run(arguments.folder.absolute())


def _attach(arguments: argparse.Namespace) -> int:
    from pytest_otval.cluster.run_commands import attach_words
    from pytest_otval.glue.start import main as start

    sys.argv = ["pytest", *attach_words(arguments.folder.absolute()), *arguments.words]
    return start()


def _environment(arguments: argparse.Namespace) -> int:
    from pytest_otval.cluster.site_shell import site_shell
    from pytest_otval.profile import load_profile

    print(site_shell(load_profile(arguments.cluster)), end="")
    return 0


def _harden(arguments: argparse.Namespace) -> int:
    from pytest_otval.cluster.harden_command import run_harden

    return run_harden(arguments)


def _checks(arguments: argparse.Namespace) -> int:
    from pytest_otval.checks.catalogue import show_checks

    return show_checks(arguments.id, as_json=arguments.json)


if __name__ == "__main__":
    sys.exit(main())
