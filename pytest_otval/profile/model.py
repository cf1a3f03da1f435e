"""A whole profile, and what has to hold between its sections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from pytest_otval.profile.facts import Fact, check_facts
from pytest_otval.profile.images import ImageNames, Recipe, RegistriesSection, image_prefix
from pytest_otval.profile.machine import (
    BudgetSection,
    BuildSection,
    NetworkSection,
    QuotaSection,
    SandboxSection,
    ScratchSection,
    SetupSection,
)
from pytest_otval.profile.models import ModelSection
from pytest_otval.profile.section import Line, Name, Section
from pytest_otval.profile.slurm import SlurmSection
from pytest_otval.profile.storage import ModulesSection, StorageSection


class Profile(Section):
    """A whole cluster profile."""

    name: str
    sandbox: SandboxSection = SandboxSection()
    network: NetworkSection = NetworkSection()
    scratch: ScratchSection = ScratchSection()
    budget: BudgetSection = BudgetSection()
    quota: QuotaSection = QuotaSection()
    build: BuildSection = BuildSection()
    image_sources: Annotated[tuple[str, ...], Field(min_length=1)] = ("registry", "bootstrap")
    """Where base images come from, first to answer wins; plugins may give others."""
    registries: RegistriesSection = RegistriesSection()
    mirrors: Mapping[Annotated[str, AfterValidator(image_prefix)], Annotated[str, AfterValidator(image_prefix)]] = {}
    """``[mirrors]``: HOST[/PATH] of image names to the HOST[/PATH] where this site has the same. Names, digests and
    keys stay the original's; what a mirror cannot give is asked of the original."""
    images: tuple[ImageNames, ...] = ()
    recipes: Mapping[str, Recipe] = {}
    setup: SetupSection = SetupSection()
    slurm: SlurmSection | None = None
    """None where there is no Slurm."""
    modules: ModulesSection = ModulesSection()
    models: Mapping[Line, ModelSection] = {}
    """Language models by name."""
    storage: Mapping[Name, StorageSection] = {}
    versions: Mapping[Name, Line] = {}
    """``[versions]``: of which programs the site was seen to have which version."""
    facts: tuple[Fact, ...] = ()
    """From where the values of this file are."""

    @model_validator(mode="after")
    def _mounts_exist(self) -> Profile:
        for name, partition in (self.slurm.partitions if self.slurm else {}).items():
            for mount in partition.mounts:
                if mount not in self.storage:
                    raise ValueError(
                        f"[slurm.partitions.{name}] mounts names {mount!r}, but there is no [storage.{mount}]"
                    )
        exports = [place.exports for place in self.storage.values()]
        for name in exports:
            if exports.count(name) > 1:
                raise ValueError(f"two of [storage] export {name}")
        return self

    @model_validator(mode="after")
    def _facts_speak_for_values(self) -> Profile:
        check_facts(self.facts, self.model_dump(exclude_unset=True, exclude={"name"}))
        return self

    @model_validator(mode="after")
    def _recipes_exist(self) -> Profile:
        seen: set[str] = set()
        for entry in self.images:
            if entry.recipe not in self.recipes:
                raise ValueError(
                    f"[[images]] names the recipe {entry.recipe!r}, but there is no [recipes.{entry.recipe}]"
                )
            for name in entry.names:
                if name in seen:
                    raise ValueError(f"[[images]] gives {name!r} two recipes")
                seen.add(name)
        for item in self.setup.prepare:
            recipe = item.removeprefix("image:bootstrap:")
            if recipe != item and recipe not in self.recipes:
                raise ValueError(f"[setup] prepare names {item!r}, but there is no [recipes.{recipe}]")
        return self

    def recipe_name(self, image: str) -> str | None:
        """Return the name of the recipe that stands in for an image name, or None."""
        return next((entry.recipe for entry in self.images if image in entry.names), None)
