"""The named sources: where their files are, what their columns mean, and where the hub has them.

A package adds a `NamedSource`, or a function that returns one, as an entry point `derivlang.sources`.
"""

from __future__ import annotations

import difflib
import glob
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError, UsageError
from derivlang.core.messages import first_names, in_shell
from derivlang.core.names import SPLITS
from derivlang.core.plugins import Registry
from derivlang.core.schema import NLI, TEXT, Field, Schema, Side
from derivlang.core.takes import Mode
from derivlang.formats.conllu import MEANING as CONLLU
from derivlang.formats.squad import MEANING as SQUAD
from derivlang.sources.corpus import Corpus, CorpusFile
from derivlang.sources.folder import matching

Patterns = Mapping[str, tuple[str, ...]]  # of the files of each split
WIKIANN = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC")
TAGGED = Schema((Side("", words="tokens"),), (Field("ner_tags", "entities", WIKIANN),))
XNLI = Schema((Side("premise", text="premise"), Side("hypothesis", text="hypothesis")), (Field("label", "value", NLI),))
PAWSX = Schema(
    (Side("sentence1", text="sentence1"), Side("sentence2", text="sentence2")), (Field("label", "value", ("0", "1")),)
)


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A named source: what is known of a corpus.

    files: the file patterns of each split. In them, in `hub` and in `language`, `{arg}` stands for what follows the
    colon, else for `default`; `{code}` for the ISO code of the treebank that this names, and `{ud}` for its name on the
    hub. prefix: what folder names begin with; the user may type it, too. hub: (dataset, config), or None. options,
    aliases, language_column: as in `Corpus`. own: by what follows the colon, the fields that differ there. folder:
    where the files are, if no folder of the user's has them.
    """

    name: str
    summary: str
    format: str
    schema: Schema
    files: Patterns
    default: str = ""
    prefix: str = ""
    hub: tuple[str, str] | None = None
    words: Mode = "spacy"
    options: dict[str, Any] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    language_column: str | None = None
    language: str = "en"
    licence: str = "unknown"
    citation: str = ""
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    folder: Path | None = None

    def __post_init__(self) -> None:
        for name, kind in (("files", Mapping), ("language", str)):
            if not isinstance(getattr(self, name), kind):
                what = "text" if kind is str else "patterns by split"
                raise UsageError(f"the source {self.name!r}: `{name}` is not {what}", id="plug-in")

    def find(self, argument: str, folders: Sequence[Path]) -> Corpus | None:
        """Return the corpus in the first folder that has a file of it, or None.

        A folder may be one that the patterns name: text/wikitext-2, or ner/wikiann/fr for ner:fr. Raises UsageError as
        `check`; DataError several-folders.
        """
        self.check(argument)
        for folder in folders if self.folder is None else [self.folder]:
            parts, matches = [], []
            for split, patterns in self.patterns(argument).items():
                if files := matching(folder, [self._filled(p, glob.escape(argument)) for p in patterns]):
                    parts.append(CorpusFile(split, files[0], files[0].name))
                    matches += files
            if parts and not (matches[0].parent == folder and _siblings(self, [folder])):
                self._check_one_release(argument, matches)
                return self.corpus(argument, tuple(parts))
        return None

    def is_named_by(self, folder: Path) -> bool:
        """Return whether a folder, or one below it, has both the name and a file of the source."""
        patterns = chain.from_iterable(self.patterns("").values())
        return any(matching(folder, [self._filled(pattern, "")]) for pattern in patterns if "/" in pattern)

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
                fix=f"name the folder above the one to read, such as --data-dir {in_shell(Path(several[-1]).parent)}",
                id="several-folders",
            )

    def full_name(self, argument: str) -> str:
        """Return the name of the corpus of an argument, "" for none."""
        return f"{self.name}:{argument}" if argument else self.name

    def check(self, argument: str) -> None:
        """Raise UsageError for an argument that names no set of the source."""
        several = self.default or "{arg}" in f"{self.files} {self.hub}"
        if not argument or several or argument in self.own:
            return
        if self.own:
            raise UsageError(
                f"{self.name} has no set {argument!r}; there are: {', '.join(sorted(self.own))}", id="unknown-source"
            )
        raise UsageError(
            f"{self.name} is one set, so it takes no {argument!r}",
            where=f"{self.name}:{argument}",
            fix="leave it out; --splits chooses a split",
            id="unknown-source",
        )

    def corpus(self, argument: str, parts: tuple[CorpusFile, ...], **changes: Any) -> Corpus:
        """Return the corpus of these files. changes: fields of it that differ from the source's."""
        source, language = self._of(argument), self.language_of(argument)
        corpus = Corpus(
            self.full_name(argument),
            source.format,
            source.schema,
            parts,
            words=source.words,
            language=language,
            options=source.options,
            aliases=source.aliases,
            language_column=source.language_column,
            rows_language=language,
            expected=tuple(source.files),
            licence=source.licence,
            citation=source.citation,
        )
        return replace(corpus, **changes)

    def language_of(self, argument: str) -> str:
        """Return the code of the language of a set."""
        return self._filled(self.language, argument)

    def on_hub(self, argument: str) -> tuple[str, str] | None:
        """Return dataset and configuration on the hub, or None."""
        if self.hub is None or self.lacks_treebank(argument):
            return None
        return self.hub[0], self._filled(self.hub[1], argument)

    def lacks_treebank(self, argument: str) -> bool:
        """Return whether an argument is a language, where the source takes a treebank: pos:fr or pos:French."""
        return bool(self.prefix) and argument in {*_UD_CODES, *_UD_CODES.values()}

    def layout(self, argument: str) -> list[str]:
        """Return the first pattern of each split, for an error that says where to put the files."""
        return [self._filled(patterns[0], argument) for patterns in self.patterns(argument).values()]

    def patterns(self, argument: str) -> Patterns:
        """Return the file patterns of each split."""
        return self._of(argument).files

    def _of(self, argument: str) -> NamedSource:
        own = self.own.get(argument or self.default)
        return replace(self, **own) if own else self

    def _filled(self, text: str, argument: str) -> str:
        """Return a text with what stands for `{arg}`, `{code}` and `{ud}`."""
        argument = argument or self.default
        language, _, treebank = argument.partition("-")
        code = _UD_CODES.get(language)
        return text.format(arg=argument, code=code or "xx", ud=f"{code or language.lower()}_{treebank.lower()}")


def files_of_splits(*patterns: str, names: Sequence[str] = ("train", "dev", "test")) -> Patterns:
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


# ISO codes of languages; treebanks are named by their English names.
_UD_CODES = dict(
    pair.split(":")
    for pair in (
        "Arabic:ar Basque:eu Chinese:zh English:en French:fr German:de Hebrew:he Hindi:hi Indonesian:id Irish:ga "
        "Italian:it Japanese:ja Korean:ko Latin:la Persian:fa Russian:ru Scottish_Gaelic:gd Spanish:es Tamil:ta "
        "Turkish:tr Vietnamese:vi Welsh:cy Portuguese:pt Dutch:nl Polish:pl Czech:cs Finnish:fi Swedish:sv"
    ).split()
)
# Column names of the 19-column files of XNLI 1.0 and of the release of MultiNLI.
_XNLI_RELEASES = {"sentence1": "premise", "sentence2": "hypothesis", "gold_label": "label", "hypo": "hypothesis"}
_XNLI_FILES: Patterns = {
    "train": ("xnli/multinli.train.{arg}.tsv", "multinli.train.{arg}.tsv"),
    "validation": ("xnli/dev.{arg}.tsv", "dev.{arg}.tsv", "xnli/xnli.dev.tsv", "xnli.dev.tsv"),
    "test": ("xnli/test.{arg}.tsv", "test.{arg}.tsv", "xnli/xnli.test.tsv", "xnli.test.tsv"),
}
_MLQA = ("qa/mlqa/dev-context-{arg}-question-{arg}.json", "mlqa/dev-context-{arg}-question-{arg}.json")
_XQUAD = ("qa/xquad/xquad.{arg}.json", "xquad/xquad.{arg}.json", "xquad.{arg}.json")
_ENGLISH_QUESTIONS: Patterns = {
    "train": ("qa/squad/train-v1.1.json", "squad/train-v1.1.json", "train-v1.1.json"),
    "validation": (*_MLQA, "qa/squad/dev-v1.1.json", "squad/dev-v1.1.json", "dev-v1.1.json"),
    "test": _XQUAD,
}
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
        language="{code}",
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
        language="{arg}",
        citation="Pan et al. (2017): Cross-lingual Name Tagging and Linking for 282 Languages. ACL 2017; "
        "Rahimi, Li, Cohn (2019): Massively Multilingual Transfer for NER. ACL 2019.",
    ),
    NamedSource(
        "xnli",
        "XNLI, inference pairs, training pairs from MultiNLI; xnli:fr is another language",
        "delimited",
        XNLI,
        _XNLI_FILES,
        default="en",
        # English training pairs come from MultiNLI if XNLI has none.
        own={"en": {"files": {**_XNLI_FILES, "train": (*_XNLI_FILES["train"], "nli/multinli_pairs.tsv")}}},
        hub=("facebook/xnli", "{arg}"),
        options={"columns": ("premise", "hypothesis", "label"), "quoting": False},
        aliases=_XNLI_RELEASES,
        language_column="language",
        language="{arg}",
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
        language="{arg}",
        citation="Yang et al. (2019): PAWS-X: A Cross-lingual Adversarial Dataset. EMNLP 2019.",
    ),
    NamedSource(
        "squad",
        "SQuAD-form questions: XQuAD, MLQA, training questions from SQuAD; squad:de is another language",
        "squad",
        SQUAD,
        {"validation": _MLQA, "test": _XQUAD},
        default="en",
        own={"en": {"files": _ENGLISH_QUESTIONS}},
        hub=("google/xquad", "xquad.{arg}"),
        language="{arg}",
        licence="cc-by-sa-4.0",
        citation="Artetxe, Ruder, Yogatama (2020): On the Cross-lingual Transferability. ACL 2020; "
        "Lewis et al. (2020): MLQA. ACL 2020.",
    ),
    NamedSource(
        "demo",
        "the built-in set: tags, trees and entities; demo:nli has pairs, demo:qa questions, demo:pairs minimal pairs",
        "conllu",
        Schema(CONLLU.sides, (*CONLLU.fields, Field("ner_tags", "entities", WIKIANN))),
        files_of_splits("demo-ud-{split}.conllu"),
        options={"entities": True},
        licence="apache-2.0",
        citation="derivlang: the demo sentences, written for the project.",
        folder=Path(__file__).parent / "demo",
        own={
            "nli": {
                "format": "delimited",
                "schema": XNLI,
                "files": files_of_splits("demo-nli-{split}.tsv"),
                "options": {"columns": ("premise", "hypothesis", "label"), "header": False},
            },
            "qa": {"format": "squad", "schema": SQUAD, "files": {"test": ("demo-qa-test.json",)}, "options": {}},
            "pairs": {"schema": CONLLU, "files": {"test": ("demo-pairs.conllu",)}, "options": {}},
        },
    ),
)


SOURCES: Registry[NamedSource] = Registry(
    "source",
    NamedSource,
    {**{named.name: named for named in _NAMED}, "source": "derivlang.sources.generated.base:generated"},
    fix="a path to a file or folder works too",
)


def named_sources() -> dict[str, NamedSource]:
    """Return all named sources, including plug-ins' sources; those that cannot be loaded have a warning."""
    return {source.name: source for source in SOURCES.described(lambda source: source)}


def named_source(source: str) -> tuple[NamedSource | None, str]:
    """Return the named source of a user's word, None for a path or a set of the hub, and what follows the colon.

    pos:English-EWT, pos:UD_English-EWT -> (pos, "English-EWT")        demo -> (demo, "")
    """
    name, _, argument = source.partition(":")
    if name not in SOURCES:
        return None, argument
    named = SOURCES.find(name)
    return named, argument.removeprefix(named.prefix)


def missing(named: NamedSource, argument: str, folders: Sequence[Path], fault: str | None) -> DataError:
    """Return the error for a source that was not found: which files to put where. fault: of the hub, or None."""
    hub = named.on_hub(argument)
    looked = f" in {', '.join(map(str, folders))}" if folders else ", and no --data-dir was given"
    reason = f"; the hub ({'/'.join(hub)}) does not give it: {fault}" if hub and fault else ""
    near = [*_siblings(named, folders), *near_names(named, argument, folders)]
    what = f"the source {named.full_name(argument)} was not found{looked}{reason}"
    fix = "\n    ".join(["put these files into a folder and pass it as --data-dir:", *named.layout(argument)])
    if named.lacks_treebank(argument):
        what = f"{named.name} takes a treebank, and {argument!r} is a language"
        fix = f"name the treebank, such as {near[0] if near else 'pos:French-GSD'}"
    return DataError(what + (f"; {first_names(near, 5)} is there" if near else ""), fix=fix, id="source-missing")


def near_names(named: NamedSource, argument: str, folders: Sequence[Path]) -> list[str]:
    """Return the sets in these folders of a language, or whose names are nearly the same as an argument."""
    there, code = sorted(named.arguments_in(folders)), _UD_CODES.get(argument.capitalize(), argument)
    near = [name for name in there if named.language_of(name) == code]
    near = near or difflib.get_close_matches(argument, there, cutoff=0.5)
    return [named.full_name(name) for name in near]


def _siblings(named: NamedSource, folders: Sequence[Path]) -> list[str]:
    """Return the sources of the same name but another number that are in these folders: wikitext2 for wikitext103."""
    stem = named.name.rstrip("0123456789")
    others = [name for name in SOURCES.names() if name != named.name and name.rstrip("0123456789") == stem]
    return [name for name in others if any(SOURCES.find(name).is_named_by(folder) for folder in folders)]
