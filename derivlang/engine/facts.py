"""What the bytes of a shard depend on besides the job: a process with other facts would write other shards."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pyarrow as pa

from derivlang.core.version import __version__
from derivlang.engine.job import Job
from derivlang.parsing.registry import find_parser

Facts = Mapping[str, str | None]


def versions() -> dict[str, str | None]:
    """Return the versions of this process, by name; None for a package that is not installed."""
    try:
        spacy = version("spacy")
    except PackageNotFoundError:
        spacy = None
    return {
        "derivlang": __version__,
        "pyarrow": pa.__version__,
        "numpy": np.__version__,
        "unicode": unicodedata.unidata_version,
        "spacy": spacy,
    }


def facts_of(job: Job) -> dict[str, str | None]:
    """Return the versions, and the fingerprints of pipeline and parser, which cover the files that a spec names.

    DerivlangError if this process cannot read what the job names.
    """
    parser = None if job.parser is None else find_parser(job.parser, job.corpus.language).fingerprint
    return {**versions(), "pipeline": job.pipeline.fingerprint(job.lexicon_text), "parser": parser}


def differences(actual: Facts, expected: Facts) -> str:
    """Return what differs, for a message: "numpy 2.1.0 (here 2.4.6), …"; "" if nothing does.

    expected: of this process. Facts that only one of them has differ, too.
    """
    names = dict.fromkeys([*expected, *actual])
    return ", ".join(
        f"{name} {actual.get(name)} (here {expected.get(name)})"
        for name in names
        if actual.get(name) != expected.get(name)
    )
