"""What ranks are given: a job and its tasks, in `plan.json`, or in `draft.json` while their documents are not counted.

.derivlang/plan.json                    versions, hashes of the texts below, the job and its tasks (stored.py)
.derivlang/HASH16/lexicon.tsv           the lexicon
.derivlang/HASH16/source-lexicon.tsv    the lexicon of a derived source
.derivlang/HASH16/files/                the files that the spec names
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.errors import DataError, StoreError, UsageError
from derivlang.core.parse_errors import parse_errors
from derivlang.core.version import __version__
from derivlang.engine.job import Job, Plan
from derivlang.engine.stored import restored, stored
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.parsing.registry import find_parser
from derivlang.sources.request import SourceRequest
from derivlang.store.manifest import DIGEST, LEXICON
from derivlang.store.record import check_record
from derivlang.store.set_plan import is_of_set, stage_of
from derivlang.store.storage import Store, store_at

FORMAT = 2  # of plans and drafts
_FORM = {"format": FORMAT, "facts": {"*": str | None}, "texts": {"*": DIGEST}, "job": dict}
# What the bytes of a shard depend on besides the job: a process with other facts would write other shards.
Facts = Mapping[str, str | None]
_SOURCE_LEXICON = "source-lexicon.tsv"
_KEPT = f"{SPEC_FILES}/"


def give(
    job: Job, tasks: Plan, kept: Mapping[str, bytes], request: SourceRequest
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return what the file of a plan or draft says of a job, JSON values, and the texts beside it, by name.

    kept: the content of the files that the spec names, by name. request: as of `stored`.
    """
    texts = {LEXICON: job.lexicon_text, _SOURCE_LEXICON: job.corpus.lexicon_text}
    files = {name: text.encode() for name, text in texts.items() if text is not None}
    files |= {f"{_KEPT}{name}": content for name, content in kept.items()}
    given = {
        "format": FORMAT,
        "facts": facts_of(job),
        "texts": {name: sha256(content).hexdigest() for name, content in files.items()},
        "job": stored(job, tasks, request),
    }
    return given, files


def take(
    out: Path, name: str, hash: str, given: Mapping[str, Any], *, fitted: bool
) -> tuple[Job, Plan, dict[str, bytes]]:
    """Return the job of a plan or draft, its tasks, and the content of the files that the spec names.

    StoreError if it was damaged, DataError if other versions have stored it.

    out: the place of the set. name: of the file that says `given`. hash: of the plan or draft. fitted: whether the
    lexicon is fitted; else its text is the saved lexicon to start from, and the files of the source have no hashes yet.
    """
    store, stage, where = store_at(out), stage_of(hash), str(out / name)
    with parse_errors(where, "plan", error=StoreError, id="plan", fix="plan the set again, in another place"):
        check_record(given, _FORM)
        _check_facts(versions(), {name: given["facts"].get(name) for name in versions()}, out)
        files = {name: _content(store, stage, name, digest) for name, digest in given["texts"].items()}
        kept = {name.removeprefix(_KEPT): content for name, content in files.items() if name.startswith(_KEPT)}
        lexicon, of_source = (files[name].decode() if name in files else None for name in (LEXICON, _SOURCE_LEXICON))
        try:
            job, tasks = restored(given["job"], lexicon, of_source, out / stage, where, fitted=fitted)
        except UsageError as error:  # in its spec: nobody typed it here
            raise ValueError(error.what) from error
    _check_facts(facts_of(job), given["facts"], out)
    return job, tasks, kept


def _content(store: Store, stage: str, name: str, digest: str) -> bytes:
    """Return a file that was stored with the plan. ValueError if it is not the same."""
    if name not in (LEXICON, _SOURCE_LEXICON) and not is_of_set(name):
        raise ValueError(f"{name!r} is not a file of a plan")
    content = store.get(f"{stage}/{name}")
    if content is None or sha256(content).hexdigest() != digest:
        raise ValueError(f"{name} is missing or was changed")
    return content


def _check_facts(here: Facts, planned: Facts, out: Path) -> None:
    """Raise DataError if this process would write other bytes than the one that made the plan."""
    if told := differences(planned, here):
        raise DataError(
            f"the set was planned with {told}: this process would write other bytes",
            where=str(out),
            fix="install the same versions, or plan the set again with those that are here: all its tasks run again",
            id="other-workers",
        )


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
