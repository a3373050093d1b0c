"""The named sources: where their files are, what their columns mean, and where the hub has them.

A package adds a `NamedSource`, or a function that returns one, as an entry point `derivlang.sources`.
"""

from __future__ import annotations

import difflib
import glob
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError, UsageError
from derivlang.core.plugins import Registry
from derivlang.core.rules import Mode
from derivlang.core.schema import NLI, TEXT, Field, Schema, Side
from derivlang.core.splits import SPLITS
from derivlang.formats.conllu import MEANING as CONLLU
from derivlang.formats.squad import MEANING as SQUAD
from derivlang.sources.corpus import Corpus, CorpusFile, first_matches, not_found

WIKIANN = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC")

TAGGED = Schema((Side("", words="tokens"),), (Field("ner_tags", "entities", WIKIANN),))
XNLI = Schema((Side("premise", text="premise"), Side("hypothesis", text="hypothesis")), (Field("label", "value", NLI),))
PAWSX = Schema(
    (Side("sentence1", text="sentence1"), Side("sentence2", text="sentence2")),
    (Field("label", "value", ("0", "1")),),
)


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A named source.

    files: the file patterns of each split, or a function of `arg` that returns them. `{arg}` stands for what follows
    the colon, else for `default`. prefix: what folder names begin with; the user may type it, too. hub: (dataset,
    config) with `{arg}`, or None. options, aliases, language_column: as in `Corpus`.
    """

    name: str
    summary: str
    format: str
    schema: Schema
    files: dict[str, tuple[str, ...]] | Callable[[str], dict[str, tuple[str, ...]]]
    default: str = ""
    prefix: str = ""
    hub: tuple[str, str] | None = None
    words: Mode = "spacy"
    options: dict[str, Any] | None = None
    aliases: dict[str, str] | None = None
    language_column: str | None = None
    language: Callable[[str], str] = lambda arg: "en"
    licence: str = "unknown"
    citation: str = ""

    def find(self, argument: str, folders: Sequence[Path]) -> Corpus | None:
        """Return the corpus in the first folder that has a file of it, or None.

        A folder may be one that the patterns name: text/wikitext-2, or ner/wikiann/fr for ner:fr. Raises UsageError as
        `check`; DataError several-folders.
        """
        self.check(argument)
        arg = argument or self.default
        for folder in folders:
            parts, matches = [], []
            for split, patterns in self.patterns(argument).items():
                files = _matches(folder, [pattern.format(arg=glob.escape(arg)) for pattern in patterns])
                if files:
                    parts.append(CorpusFile(split, files[0], files[0].name))
                    matches += files
            if parts and not (matches[0].parent == folder and _siblings(self, [folder])):
                self._check_one_release(argument, matches)
                return self.corpus(argument, tuple(parts))
        return None

    def is_named_by(self, folder: Path) -> bool:
        """Return whether a folder, or one below it, has both the name and a file of the source."""
        patterns = chain.from_iterable(self.patterns("").values())
        return any(_matches(folder, [p.format(arg=glob.escape(self.default))]) for p in patterns if "/" in p)

    def arguments_in(self, folders: Sequence[Path]) -> set[str]:
        """Return the arguments that have a file in these folders.

        ud/UD_French-GSD/fr_gsd-ud-train.conllu     ->     French-GSD
        """
        found = set()
        for pattern in chain.from_iterable(self.patterns("").values()):
            shape = re.escape(pattern).replace(r"\{arg\}", "(?P<arg>[^/]+)", 1).replace(r"\{arg\}", "(?P=arg)")
            shape = shape.replace(r"\*", "[^/]*")
            for folder in folders if "{arg}" in pattern else ():
                names = (path.relative_to(folder).as_posix() for path in folder.glob(pattern.format(arg="*")))
                found |= {match["arg"] for name in names if (match := re.fullmatch(shape, name))}
        return found

    def _check_one_release(self, argument: str, files: Sequence[Path]) -> None:
        """Raise DataError several-folders for files of folders with one name, if patterns have `*` for folders.

        v2.10/UD_French-GSD and v2.9/UD_French-GSD are two releases, of which neither is the one to read.
        """
        patterns = [pattern for of_split in self.patterns(argument).values() for pattern in of_split]
        homes = {path.parent.resolve(): path.parent for path in files}
        names = {home.name for home in homes.values()}
        if len(homes) > len(names) and any("*" in str(Path(pattern).parent) for pattern in patterns):
            several = sorted(map(str, homes.values()))
            raise DataError(
                f"several folders hold {', '.join(sorted(names))}: {', '.join(several)}",
                where=f"{self.name}:{argument or self.default}",
                fix=f"name the folder above the one to read, such as --data-dir {Path(several[-1]).parent}",
                id="several-folders",
            )

    def full_name(self, argument: str) -> str:
        """Return the name of the corpus of an argument, "" for none."""
        return f"{self.name}:{argument}" if argument else self.name

    def check(self, argument: str) -> None:
        """Raise UsageError for an argument, if the source is one set."""
        several = self.default or callable(self.files) or "{arg}" in str(self.files) or "{arg}" in str(self.hub)
        if argument and not several:
            raise UsageError(
                f"{self.name} is one set, so it takes no {argument!r}",
                where=f"{self.name}:{argument}",
                fix="leave it out; --splits chooses a split",
                id="unknown-source",
            )

    def corpus(self, argument: str, parts: tuple[CorpusFile, ...], **changes: Any) -> Corpus:
        """Return the corpus of these files. changes: fields of it that differ from the source's."""
        fields: dict[str, Any] = {
            "name": self.full_name(argument),
            "format": self.format,
            "schema": self.schema,
            "parts": parts,
            "words": self.words,
            "language": self.language(argument or self.default),
            "options": self.options or {},
            "aliases": self.aliases or {},
            "language_column": self.language_column,
            "rows_language": self.language(argument or self.default),
            "expected": tuple(self.patterns(argument)),
            "licence": self.licence,
            "citation": self.citation,
        }
        return Corpus(**{**fields, **changes})

    def layout(self, argument: str) -> list[str]:
        """Return the first pattern of each split, for an error that says where to put the files."""
        arg = argument or self.default
        return [patterns[0].format(arg=arg) for patterns in self.patterns(argument).values()]

    def patterns(self, argument: str) -> dict[str, tuple[str, ...]]:
        """Return the file patterns of each split."""
        return self.files(argument or self.default) if callable(self.files) else self.files


def _matches(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Return the files of the first pattern that has some below the folder, or in it if the pattern names it, too.

    data: text/wikitext-2/wiki.test.tokens     data/text: the same     data/text/wikitext-2: the same
    """
    if matches := first_matches(folder, patterns):
        return matches
    here = Path(os.path.abspath(folder))  # noqa: PTH100 (a link keeps its name, which the pattern may have)
    deepest = max(pattern.count("/") for pattern in patterns)
    for above in here.parents[:deepest]:
        if matches := [path for path in first_matches(above, patterns) if path.is_relative_to(here)]:
            return matches
    return []


def files_of_splits(*patterns: str, names: Sequence[str] = ("train", "dev", "test")) -> dict[str, tuple[str, ...]]:
    """Return the patterns of each split, with its name in its files for `{split}`."""
    return {
        split: tuple(pattern.replace("{split}", name) for pattern in patterns)
        for split, name in zip(SPLITS, names, strict=True)
    }


def _wikitext(size: str, summary: str) -> NamedSource:
    folder = f"wikitext-{size}"
    patterns = (
        f"text/{folder}/wiki.{{split}}.tokens",
        f"{folder}/wiki.{{split}}.tokens",
        f"{folder}-v1/wiki.{{split}}.tokens",
        "wiki.{split}.tokens",  # in a folder of any name but the name of the other size
    )
    return NamedSource(
        f"wikitext{size}",
        summary,
        "text",
        TEXT,
        files_of_splits(*patterns, names=("train", "valid", "test")),
        hub=("Salesforce/wikitext", f"{folder}-v1"),
        words="space",
        licence="cc-by-sa-3.0",
        citation="Merity, Xiong, Bradbury, Socher (2017): Pointer Sentinel Mixture Models. ICLR 2017.",
    )


def _xnli_files(language: str) -> dict[str, tuple[str, ...]]:
    """Return the files of XNLI: English training pairs come from MultiNLI if XNLI has none."""
    english = ("nli/multinli_pairs.tsv",) if language == "en" else ()
    return {
        "train": ("xnli/multinli.train.{arg}.tsv", "multinli.train.{arg}.tsv", *english),
        "validation": ("xnli/dev.{arg}.tsv", "dev.{arg}.tsv", "xnli/xnli.dev.tsv", "xnli.dev.tsv"),
        "test": ("xnli/test.{arg}.tsv", "test.{arg}.tsv", "xnli/xnli.test.tsv", "xnli.test.tsv"),
    }


def _squad_files(language: str) -> dict[str, tuple[str, ...]]:
    """Return the files of MLQA and XQuAD, and for English the files of SQuAD 1.1."""
    files = {
        "validation": ("qa/mlqa/dev-context-{arg}-question-{arg}.json", "mlqa/dev-context-{arg}-question-{arg}.json"),
        "test": ("qa/xquad/xquad.{arg}.json", "xquad/xquad.{arg}.json", "xquad.{arg}.json"),
    }
    if language == "en":
        files = {"train": ("qa/squad/train-v1.1.json", "squad/train-v1.1.json", "train-v1.1.json"), **files}
        files["validation"] += ("qa/squad/dev-v1.1.json", "squad/dev-v1.1.json", "dev-v1.1.json")
    return files


# ISO codes of languages; treebanks are named by their English names.
_UD_CODES = dict(
    pair.split(":")
    for pair in (
        "Arabic:ar Basque:eu Chinese:zh English:en French:fr German:de Hebrew:he Hindi:hi Indonesian:id Irish:ga "
        "Italian:it Japanese:ja Korean:ko Latin:la Persian:fa Russian:ru Scottish_Gaelic:gd Spanish:es Tamil:ta "
        "Turkish:tr Vietnamese:vi Welsh:cy Portuguese:pt Dutch:nl Polish:pl Czech:cs Finnish:fi Swedish:sv"
    ).split()
)


def _ud_language(treebank: str) -> str:
    return _UD_CODES.get(treebank.partition("-")[0], "xx")


# Column names of the 19-column files of XNLI 1.0 and of the release of MultiNLI.
_XNLI_RELEASES = {"sentence1": "premise", "sentence2": "hypothesis", "gold_label": "label", "hypo": "hypothesis"}
_NAMED = (
    _wikitext("103", "WikiText-103, tokenised English Wikipedia articles"),
    _wikitext("2", "WikiText-2, the small one"),
    NamedSource(
        "pos",
        "Universal Dependencies; pos:French-GSD is another treebank",
        "conllu",
        CONLLU,
        files_of_splits(
            "ud/UD_{arg}/*-ud-{split}.conllu", "UD_{arg}/*-ud-{split}.conllu", "*/UD_{arg}/*-ud-{split}.conllu"
        ),
        default="English-EWT",
        prefix="UD_",
        hub=("universal-dependencies/universal_dependencies", "{ud}"),
        language=_ud_language,
        licence="see the treebank's own licence",
        citation="Nivre et al. (2020): Universal Dependencies v2. LREC 2020. https://universaldependencies.org",
    ),
    NamedSource(
        "ner",
        "WikiAnn (PAN-X), entities; ner:fr is another language",
        "tagged",
        TAGGED,
        files_of_splits("ner/wikiann/{arg}/{split}.tsv", "wikiann/{arg}/{split}.tsv", "panx/{arg}/{split}.tsv"),
        default="en",
        hub=("unimelb-nlp/wikiann", "{arg}"),
        language=lambda arg: arg,
        citation="Pan et al. (2017): Cross-lingual Name Tagging and Linking for 282 Languages. ACL 2017; "
        "Rahimi, Li, Cohn (2019): Massively Multilingual Transfer for NER. ACL 2019.",
    ),
    NamedSource(
        "xnli",
        "XNLI, inference pairs, training pairs from MultiNLI; xnli:fr is another language",
        "delimited",
        XNLI,
        _xnli_files,
        default="en",
        hub=("facebook/xnli", "{arg}"),
        options={"columns": ("premise", "hypothesis", "label"), "quoting": False},
        aliases=_XNLI_RELEASES,
        language_column="language",
        language=lambda arg: arg,
        licence="cc-by-nc-4.0",
        citation="Conneau et al. (2018): XNLI: Evaluating Cross-lingual Sentence Representations. EMNLP 2018.",
    ),
    NamedSource(
        "pawsx",
        "PAWS-X, paraphrase pairs; pawsx:de is another language",
        "delimited",
        PAWSX,
        files_of_splits("pawsx/{split}.{arg}.tsv", "pawsx/{split}-{arg}.tsv", "paws-x/{arg}/{split}_2k.tsv"),
        default="en",
        hub=("google-research-datasets/paws-x", "{arg}"),
        options={"columns": ("sentence1", "sentence2", "label"), "quoting": True},
        language=lambda arg: arg,
        citation="Yang et al. (2019): PAWS-X: A Cross-lingual Adversarial Dataset. EMNLP 2019.",
    ),
    NamedSource(
        "squad",
        "SQuAD-form questions: XQuAD, MLQA, training questions from SQuAD; squad:de is another language",
        "squad",
        SQUAD,
        _squad_files,
        default="en",
        hub=("google/xquad", "xquad.{arg}"),
        language=lambda arg: arg,
        licence="cc-by-sa-4.0",
        citation="Artetxe, Ruder, Yogatama (2020): On the Cross-lingual Transferability. ACL 2020; "
        "Lewis et al. (2020): MLQA. ACL 2020.",
    ),
)


SOURCES: Registry[NamedSource] = Registry(
    "source",
    NamedSource,
    {
        **{named.name: named for named in _NAMED},
        "demo": "derivlang.sources.demo_source:demo",
        "source": "derivlang.sources.generated.named:generated",
    },
    fix="a path to a file or folder works too",
)


def named_sources() -> dict[str, NamedSource]:
    """Return all named sources, including plug-ins' sources."""
    return {name: SOURCES.find(name) for name in SOURCES.names()}


def split_name(source: str) -> tuple[str, str]:
    """Return the name of a source, which need not be one of SOURCES, and its argument.

    pos:English-EWT, pos:UD_English-EWT -> ("pos", "English-EWT")        demo -> ("demo", "")
    """
    name, _, argument = source.partition(":")
    return name, argument.removeprefix(SOURCES.find(name).prefix) if name in SOURCES else argument


def find_named(name: str, argument: str, folders: Sequence[Path]) -> tuple[Corpus | None, NamedSource]:
    """Return the corpus of a named source in these folders, or None, and the source. name: one of SOURCES."""
    named = SOURCES.find(name)
    return named.find(argument, folders), named


def hub_name(named: NamedSource, argument: str) -> tuple[str, str] | None:
    """Return dataset and configuration on the hub, or None."""
    if named.hub is None:
        return None
    arg = argument or named.default
    language, _, treebank = arg.partition("-")
    ud = f"{_UD_CODES.get(language, language.lower())}_{treebank.lower()}"
    return named.hub[0], named.hub[1].format(arg=arg, ud=ud)


def missing(named: NamedSource, argument: str, folders: Sequence[Path], fault: str | None) -> DataError:
    """Return the error for a named source that was not found. fault: why the hub does not have it, or None."""
    hub = hub_name(named, argument)
    reason = f"; the hub ({'/'.join(hub)}) does not give it: {fault}" if hub and fault else ""
    near = difflib.get_close_matches(argument, named.arguments_in(folders), cutoff=0.5)
    there = ", ".join([*_siblings(named, folders), *map(named.full_name, near)])
    return not_found(
        named.full_name(argument), folders, named.layout(argument), f"{reason}; {there} is there" if there else reason
    )


def _siblings(named: NamedSource, folders: Sequence[Path]) -> list[str]:
    """Return the sources of the same name but another number that are in these folders: wikitext2 for wikitext103."""
    stem = named.name.rstrip("0123456789")
    others = [name for name in SOURCES.names() if name != named.name and name.rstrip("0123456789") == stem]
    return [name for name in others if any(SOURCES.find(name).is_named_by(folder) for folder in folders)]
