"""``python -m pytest_otval models``: weights of language models on this site, and a server of one."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from pytest_otval.cluster.image_command import run_action

_ACTIONS = "pytest_otval.cluster.models_actions"


def add_arguments(models: argparse.ArgumentParser, add_cluster: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the actions; ``add_cluster`` adds the option that names the cluster profile."""
    actions = models.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, help: str, function: str) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        parser.set_defaults(run=lambda arguments: run_action(_ACTIONS, function, arguments))
        return parser

    model = "a model of the profile, or ORGANISATION/NAME[@COMMIT] of the hub"
    got = add("download", "bring weights from the Hugging Face hub", "download")
    got.add_argument("model", metavar="MODEL", help=model)
    add_cluster(got)

    listing = add("list", "list the weights that are here", "list_models")
    listing.add_argument("--json", action="store_true", help="print JSON in place of text")

    checked = add("verify", "read weights and find files that are not as they came", "verify")
    checked.add_argument("models", nargs="*", metavar="REPO", help="ORGANISATION/NAME; these only (default: all)")

    served = add("serve", "serve a model on this node until SIGTERM, and print its address as JSON", "serve")
    served.add_argument("model", metavar="MODEL", help=model)
    served.add_argument("--gpus", type=int, metavar="N", help="GPUs (default: the profile's)")
    served.add_argument("--host", default="127.0.0.1", help="address to listen at (default: 127.0.0.1)")
    served.add_argument("--port", type=int, default=0, help="default: any that is free")
    add_cluster(served)
