"""Whether two sets or runs are of one derived language, and if not, what differs.

Equal fingerprints are equal languages. If they differ, the parts that they are hashes of are compared:

    the transforms and their parameters     trans:overlap=25 in A and trans:overlap=50 in B
    the lexicon, word by word               the first word that differs is 'is': image=ის … in A, image=is … in B
    rules and files (grammars)              a set whose fingerprint no longer matches its spec and its lexicon
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from derivlang.formats.spec_paths import files_of
from derivlang.pipeline import Pipeline
from derivlang.store.manifest import LEXICON, NAME, Derived
from derivlang.store.record import read_record
from derivlang.transforms.fitting import read_lexicon, sections

_RUN = "run.json"
_LEXICONS = (f"twin/{LEXICON}", LEXICON)  # of a run; training/languages/


@dataclass(frozen=True, slots=True)
class DerivedLanguage:
    """The derived language of a set or a run.

    name: the folder, for messages. lexicon: the text of its lexicon.tsv, or None. recorded: its fingerprint. version:
    the derivlang that made it. policies: of a set; they are not part of the language but may change the order of a
    sentence.
    """

    name: str
    pipeline: Pipeline
    lexicon: str | None
    recorded: str
    version: str
    policies: Mapping[str, Any]

    def is_current(self) -> bool:
        """Return whether the rules and files are those that it was made with."""
        texts = {self.lexicon, None}  # a run with a twin records the fingerprint without the lexicon
        return self.recorded in {self.pipeline.fingerprint(text) for text in texts}


def language_of(folder: Path) -> DerivedLanguage:
    """Return the language of a set or a run. StoreError if the folder is neither, or damaged."""
    if (folder / _RUN).is_file() and not (folder / NAME).exists():
        return _language_of_run(folder)
    derived = Derived(folder)
    manifest = derived.manifest
    return DerivedLanguage(
        str(folder),
        derived.pipeline,
        derived.lexicon_text(),
        manifest["fingerprint"],
        str(manifest.get("derivlang")),
        dataclasses.asdict(derived.policies),
    )


def compare(one: DerivedLanguage, other: DerivedLanguage) -> dict[str, Any]:
    """Compare two languages.

    Returns {"ok", "sets": [{"out", "spec", "fingerprint"}], "differences", "notes"}; the last two are sentences. `ok`
    is whether they are one language.
    """
    differences = list(_differences(one, other))
    notes = [
        f"--{name} is {one.policies[name]} in {one.name} and {other.policies[name]} in {other.name}: it is not part of "
        "the language, but changes the order of some sentences"
        for name in one.policies
        if name in other.policies and one.policies[name] != other.policies[name]
    ]
    told = [
        {"out": language.name, "spec": str(language.pipeline), "fingerprint": language.recorded}
        for language in (one, other)
    ]
    return {"ok": not differences, "sets": told, "differences": differences, "notes": notes}


def _language_of_run(folder: Path) -> DerivedLanguage:
    record = read_record(
        folder / _RUN,
        _RUN,
        {"spec": str, "pipeline": str},
        sealed=True,
        id="run",
        fix="restore the file, or make the run again in another folder",
    )
    pipeline = Pipeline.from_stored(record["spec"], files_of(folder), where=str(folder / _RUN))
    file = next((folder / name for name in _LEXICONS if (folder / name).is_file()), None)
    lexicon = None if file is None else read_lexicon(file)
    pipeline.fit(saved=lexicon, where=str(file or folder))  # raise for a lexicon that is damaged or missing
    return DerivedLanguage(
        str(folder),
        pipeline,
        lexicon,
        record["pipeline"],
        str(record.get("derivlang")),
        {},
    )


def _differences(one: DerivedLanguage, other: DerivedLanguage) -> Iterator[str]:
    """Yield what differs."""
    if str(one.pipeline) != str(other.pipeline):
        yield f"the transforms are {one.pipeline} in {one.name} and {other.pipeline} in {other.name}"
        return
    differences = [*_of_files(one, other), *_of_lexicons(one, other)]
    if not differences:
        one.pipeline.check_keyed("a language of two corpora", one.name)
    if differences or one.recorded == other.recorded:
        yield from differences
        return
    for language in (one, other):
        files = [str(transform) for transform in language.pipeline.transforms if transform.resources]
        if not language.is_current():
            what = f"the grammar or another file of {', '.join(files)}, or a rule" if files else "a rule"
            yield f"{what} has changed since derivlang {language.version} made {language.name}"


def _of_files(one: DerivedLanguage, other: DerivedLanguage) -> Iterator[str]:
    """Yield the transforms of equal specs that read other files. Sets and runs keep copies of these files."""
    for left, right in zip(one.pipeline.transforms, other.pipeline.transforms, strict=True):
        if not left.saves and left.resources != right.resources:
            yield f"the grammar or another file of {left} in {one.name} is not the one in {other.name}"


def _of_lexicons(one: DerivedLanguage, other: DerivedLanguage) -> Iterator[str]:
    """Yield the first word that differs in each section of the lexicons; the sections belong to equal specs."""
    for (_, ours), (_, theirs) in zip(sections(one.lexicon), sections(other.lexicon), strict=False):
        left, right = _rows(ours), _rows(theirs)
        differing = [word for word in {**left, **right} if left.get(word) != right.get(word)]
        for word in differing[:1]:
            was, now = left.get(word, "it is missing"), right.get(word, "it is missing")
            yield (f"{LEXICON}: the first word that differs is {word!r}: {was} in {one.name}, {now} in {other.name}")


def _rows(state: str) -> dict[str, str]:
    """Return the rows of each word in the state of a transform, with the names of its columns: a word, then others.

    type image count kept / is ის 1 changed   ->   {"is": "image=ის count=1 kept=changed"}
    """
    header, *lines = (line.split("\t") for line in state.removesuffix("\n").split("\n"))  # words may hold U+2028
    rows: dict[str, list[str]] = {}
    for word, *values in lines:
        rows.setdefault(word, []).append(" ".join(map("=".join, zip(header[1:], values, strict=False))))
    return {word: "; ".join(several) for word, several in rows.items()}
