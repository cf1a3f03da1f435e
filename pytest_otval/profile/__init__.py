"""The cluster profile: what set-up, builds, sandboxes and jobs have to know about a machine or a cluster.

One TOML file a site, ``clusters/NAME.toml``. Unknown keys are errors, since a misspelt one would be ignored in silence.
"""

from pytest_otval.profile.facts import Fact
from pytest_otval.profile.images import ImageNames, Recipe, RegistriesSection
from pytest_otval.profile.load import PACKAGED, load_profile, profile_file
from pytest_otval.profile.machine import BudgetSection, BuildSection, QuotaSection, SetupSection
from pytest_otval.profile.model import Profile
from pytest_otval.profile.models import ModelSection, ServeSection
from pytest_otval.profile.slurm import PartitionSection, SlurmSection
from pytest_otval.profile.storage import ModulesSection, StorageSection

__all__ = [
    "PACKAGED",
    "BudgetSection",
    "BuildSection",
    "Fact",
    "ImageNames",
    "ModelSection",
    "ModulesSection",
    "PartitionSection",
    "Profile",
    "QuotaSection",
    "Recipe",
    "RegistriesSection",
    "ServeSection",
    "SetupSection",
    "SlurmSection",
    "StorageSection",
    "load_profile",
    "profile_file",
]
