"""What the bytes of a shard depend on besides the job: a process with other facts would write other shards."""

from __future__ import annotations

import unicodedata
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pyarrow as pa

from derivlang.core.version import __version__
from derivlang.engine.job import Job
from derivlang.parsing.registry import find_parser


@dataclass(frozen=True, slots=True)
class Facts:
    """Versions, and the fingerprints of pipeline and parser, which cover the files that a spec names."""

    derivlang: str
    pyarrow: str
    numpy: str
    unicode: str
    spacy: str | None
    pipeline: str
    parser: str | None


def facts_of(job: Job) -> Facts:
    """Return the facts of this process. DerivlangError if it cannot read what the job names."""
    try:
        spacy = version("spacy")
    except PackageNotFoundError:
        spacy = None
    return Facts(
        __version__,
        pa.__version__,
        np.__version__,
        unicodedata.unidata_version,
        spacy,
        job.pipeline.fingerprint(job.lexicon_text),
        None if job.parser is None else find_parser(job.parser, job.corpus.language, job.device).fingerprint,
    )


def differences(actual: Facts, expected: Facts) -> str:
    """Return what differs, for a message: "numpy 2.1.0 (here 2.4.6), …"; "" if nothing does."""
    here, there = asdict(expected), asdict(actual)
    return ", ".join(f"{name} {there[name]} (here {here[name]})" for name in here if there[name] != here[name])
