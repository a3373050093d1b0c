"""`dictionary`, `pairs`, `tokenizer` and `twin`: what is made of the words of a source or a set."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from derivlang.commands.command import Command, Spec, pipeline_of, transforms
from derivlang.commands.folders import named_folder, set_size
from derivlang.core.messages import warn
from derivlang.core.settings import replaces, setting
from derivlang.formats.places import STDOUT, OptionalPath, PathLike, located
from derivlang.formats.progress import found, stage
from derivlang.lexical.settings import (
    DictionaryChoice,
    DictionaryFormat,
    DictionaryOptions,
    PairChoice,
    PairOptions,
    TokenizerOptions,
    TwinOptions,
    warn_of_fractions,
)
from derivlang.sources.request import SourceOptions, SourceRequest

_folder = partial(setting, None, "Folder to write.", also="-o", writes=True)


@dataclass(frozen=True, eq=False, repr=False)
class MakeDictionary(Command[dict[str, Any]], DictionaryChoice, SourceOptions):
    """Write the bilingual dictionary of SOURCE and its derived language, at a given coverage, with a recipe.

    SOURCE is given as for make; a derived set gives its own language pair. The entries are the words of the train
    split, or of the first split if there is no train split. Without -o the dictionary goes to standard output, without
    its recipe. `derivlang dict check FILE` checks a dictionary file.

    \b
    derivlang dict --t trans demo --format tsv | head
    derivlang dict --t trans --coverage 25 wikitext103 --data-dir DIR -o en-derived.tsv
    """

    source: PathLike
    spec: Spec | None = transforms("Transforms, as for make.", unset="the derived set's")
    out: OptionalPath = setting(
        None, "File or URL to write: .txt (MUSE), .tsv or .json.", also="-o", unset="standard output", file=True,
        writes=True, place=located,
    )  # fmt: skip

    def __call__(self) -> dict[str, Any]:
        """Return {"out", "pairs", "types", "entries", "coverage_types", "coverage_tokens", "heldout", "noise",
        "left_out"}: numbers of lines, of words with a translation and of chosen ones; percentages of these and of
        running words in the file; numbers of held-out entries, of wrong pairs and of chosen pairs that the format
        cannot hold. No file is left half-written."""
        from derivlang.lexical.dictionary import make_dictionary

        warn_of_fractions(type(self), vars(self))
        out = self.out or STDOUT
        kind = self.format or ("muse" if out == STDOUT else None)
        spec = None if self.spec is None else str(self.spec)
        with stage("reading"):
            return make_dictionary(
                spec, self.part(SourceRequest, source=str(self.source), format=None),
                self.part(DictionaryOptions, out=out, format=kind),
            )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class CheckDictionary(Command[dict[str, Any]]):
    """Check FILE, a dictionary, and list its faults. With -o write its valid pairs.

    \b
    derivlang dict check en-derived.tsv
    """

    file: PathLike
    out: OptionalPath = setting(
        None, "File or URL of a clean copy: .txt (MUSE), .tsv or .json.", also="-o", unset="write none", file=True,
        writes=True, place=located,
    )  # fmt: skip
    _: KW_ONLY
    format: DictionaryFormat | None = setting(
        None, "Format of the copy.", unset="by the suffix of --out, else muse", only_with="--out"
    )
    force: bool = replaces(only_with="--out")
    strict: bool = setting(False, "Stop at the first fault.")

    def __call__(self) -> dict[str, Any]:
        """Return {"pairs", "types", "skipped", "left_out", "faults", "unit", "lines"}."""
        from derivlang.lexical.dictionary import check_dictionary

        kind = self.format
        return check_dictionary(Path(self.file), strict=self.strict, out=self.out, out_format=kind, force=self.force)[1]


@dataclass(frozen=True, eq=False, repr=False)
class WritePairs(Command[dict[str, Any]], PairChoice):
    """Write a given share of the sentence pairs of DERIVED, in source order, with gold word links and a recipe.

    Links are i-j, source word first, zero-based and sorted. A higher rate contains the pairs of every lower rate, and a
    seed chooses the same pairs in every format. Without -o the file goes to standard output, without its recipe.

    \b
    derivlang pair OUT --split train --rate 25 --format pharaoh | head
    derivlang pair OUT --split train --rate 25 --format text -o train25
    """

    derived: PathLike
    out: OptionalPath = setting(
        None, "File or URL to write.", also="-o", unset="standard output", file=True, writes=True, place=located
    )

    def __call__(self) -> dict[str, Any]:
        """Return {"out", "files", "pairs", "sentences", "links", "words", "spaces"}: sentences are the pairs of the
        split, spaces the words with a space; with tokenizers also "subwords". No file is left half-written."""
        from derivlang.lexical.pairs import write_pairs

        warn_of_fractions(type(self), vars(self))
        derived, options = located(self.derived), self.part(PairOptions, out=self.out or STDOUT)
        size = set_size(derived, self.split)
        with stage("pairing", total=size and 2 * size):
            return write_pairs(derived, options)


@dataclass(frozen=True, eq=False, repr=False)
class TrainTokenizer(Command[dict[str, Any]], TokenizerOptions, SourceOptions):
    """Train a character BPE on the words of SOURCE, and of each --text.

    It is trained on the train split, or on the first split if there is none; of a derived set, on the source's words. A
    tokenizer that the same command has already made is kept.

    \b
    derivlang tokenizer train wikitext103 --data-dir DIR
    derivlang tokenizer train --vocab-size 400 demo -o tok
    """

    source: PathLike
    out: OptionalPath = _folder(unset="SOURCE.tokenizer, here")

    def __call__(self) -> dict[str, Any]:
        """Return the recipe of its folder, with "out", "vocab_size", "merges", "words" and "fingerprint". No file is
        left half-written."""
        from derivlang.lexical.train import train

        out = self.path("out") or named_folder(str(self.source), options=self.changed(), last="tokenizer")
        for source in (str(self.source), *self.text):
            _warn_of_side(source, out)
        request = self.part(SourceRequest, source=str(self.source))
        return {"out": str(out), **train(request, out, self.part(TokenizerOptions), found=found)}


def _warn_of_side(source: str, tokenizer: Path) -> None:
    """Warn that a tokenizer of a derived set is of the set's source, if the derived words differ."""
    from derivlang.store.manifest import NAME, Derived

    folder = located(source)
    if (folder / NAME).exists() and any(one.has_lexicon for one in Derived(folder).pipeline.transforms):
        warn(
            f"{source} is a derived set, whose source is read: the tokenizer does not know its derived words; one of "
            f"these is the twin: derivlang tokenizer twin {tokenizer} --t {Derived(folder).pipeline}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class MakeTwin(Command[dict[str, Any]], TwinOptions):
    """Make the twin of the tokenizer in DIR, and print what both languages share.

    \b
    derivlang tokenizer twin tok --t trans:overlap=25 --lexicon SET/lexicon.tsv -o tok-25
    derivlang tokenizer twin demo.tokenizer --t trans:script=georgian
    """

    tokenizer: PathLike
    spec: Annotated[Spec, transforms("Transforms: trans with its script and overlap; orders are ignored.")]
    out: OptionalPath = _folder(unset="DIR.TRANSFORMS, here")

    def __call__(self) -> dict[str, Any]:
        """Return the recipe of its folder, with "out", "vocab_size", "joint", "overlap" and "fingerprint". No file is
        left half-written."""
        from derivlang.lexical.twin import make_twin, trans_of

        folder, trans = Path(self.tokenizer), str(trans_of(pipeline_of(self.spec)))
        out = self.path("out") or named_folder(str(folder), trans, self.changed())
        return {"out": str(out), **make_twin(folder, str(self.spec), out, self.part(TwinOptions), found=found)}
