"""The runtime that hardened tasks name."""

from selftests.runtimes.conftest import verifier_runtime

__all__ = ["verifier_runtime"]
