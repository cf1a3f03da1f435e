"""Repairs three faults: a reward that is lost, a solution in the image, a verifier that trusts what agents change."""

import sys

from pytest_otval.sources.dataset import PatchedDataset
from pytest_otval.sources.library import hardened_tests, reward_guard, tests_out_of_image

PATCHES = [tests_out_of_image(), reward_guard(), hardened_tests()]

if __name__ == "__main__":
    sys.exit(PatchedDataset(__file__, PATCHES).main())
