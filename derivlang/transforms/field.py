"""The languages of published studies by spec, from `field.toml`: `derivlang ls --study kallini2024`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files

from derivlang.core.errors import unknown


@dataclass(frozen=True)
class FieldLanguage:
    """A derived language of a study.

    published: the spec that gives the rows of its own program, if this one draws. source: the generated source of the
    language, if it is one (then `spec` changes nothing).
    """

    name: str
    spec: str = "identity"
    published: str = ""
    source: str = ""


@dataclass(frozen=True)
class FieldStudy:
    """A published study. where: venue and arXiv number. sample: a sentence to show its languages on."""

    name: str
    title: str
    where: str
    sample: str
    languages: tuple[FieldLanguage, ...]


def field_studies() -> dict[str, FieldStudy]:
    """Return the studies by name, oldest first."""
    table = tomllib.loads(files("derivlang.transforms").joinpath("field.toml").read_text("utf-8"))
    return {
        study["name"]: FieldStudy(**{**study, "languages": tuple(FieldLanguage(**one) for one in study["languages"])})
        for study in table["study"]
    }


def field_study(name: str) -> FieldStudy:
    """Return a study by name. Raise UsageError for a name that is not listed."""
    studies = field_studies()
    if name not in studies:
        raise unknown("study", name, studies, where="--study")
    return studies[name]
