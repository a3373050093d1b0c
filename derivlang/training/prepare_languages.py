"""Make the tokenizers of a pair of languages, with a twin or a lexicon, or reuse what the folder of data holds.

a script, or only an order     tokenizer/  twin/                            of the source's text
any other language             tokenizer/  derived-tokenizer/               of the text of each
--tokenizer-for both           tokenizer/                                   of both texts
a checkpoint's tokenizer       tokenizer/                                   which reads both
lexicon.tsv                    beside them, if one was fitted or read from a file
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from derivlang.core.errors import StoreError
from derivlang.core.seal import sealed
from derivlang.engine.batches import Source
from derivlang.lexical import train as tokenizers
from derivlang.lexical.foreign import ForeignTokenizer, is_foreign
from derivlang.lexical.own import OwnTokenizer
from derivlang.lexical.settings import TokenizerOptions
from derivlang.lexical.tokenizer import TOKENIZERS, Tokenizer
from derivlang.lexical.train import TextToDerive
from derivlang.lexical.twin_folder import TWINS, make_twin
from derivlang.store.artifact import Artifact, kind_of_files
from derivlang.store.disk import disk
from derivlang.store.files import write_texts
from derivlang.store.record import record_text
from derivlang.training.data_folder import LANGUAGES, DataFolder
from derivlang.training.languages import (
    DERIVED_TOKENIZER,
    LEXICON,
    TOKENIZER,
    TWIN,
    Languages,
    is_mapped,
    of_several,
    of_texts,
    of_twin,
    twin_trans,
)
from derivlang.training.settings import TokenizerFor
from derivlang.transforms.lexicon_file import read_lexicon


def languages_of(folder: DataFolder, tokenizer: Path) -> tuple[Languages, dict[str, Path]]:
    """Return the languages of a folder, and the files that a run keeps of them, by name."""
    if not folder.settings.language:
        return _pair(folder, tokenizer)
    files: dict[str, Path] = {}
    pairs = []
    for language in folder.settings.asked[1:]:
        pair, own = _pair(folder.of(language), tokenizer, language.tokenizer)
        pairs.append((language, pair))
        files |= {name if name == TOKENIZER else f"{LANGUAGES}/{language.name}/{name}": at for name, at in own.items()}
    return of_several(pairs), files


def _pair(folder: DataFolder, tokenizer: Path, second: str = "") -> tuple[Languages, dict[str, Path]]:
    """Return the source and another language, and the files of both. second: a tokenizer of the other language."""
    asked = folder.settings.tokenizer_for
    if second:
        return _of_texts(folder, tokenizer, "each", Path(second))
    if is_foreign(tokenizer):
        return _of_checkpoint(folder, tokenizer)
    if asked is None and folder.paths.tokenizer is not None and OwnTokenizer.load(tokenizer).kind == "both":
        asked = "both"
    if asked is None and is_mapped(folder.pipeline):
        return _of_twin(folder, tokenizer)
    return _of_texts(folder, tokenizer, asked or "each")


def _trained(folder: DataFolder, tokenizer: Path, derived: TextToDerive | None = None, size: int | None = None) -> None:
    """Train a tokenizer of the folder if it is missing. derived: as of `tokenizers.train`.

    size: its number of entries, None for the settings'.

    Raise StoreError if the one that is there has another size, or was trained on another text.
    """
    kind, size = "source" if derived is None else derived.kind, size or folder.settings.vocab_size
    if not TOKENIZERS.is_whole(tokenizer):
        folder.required(tokenizer)
        folder.say("training the tokenizer" if kind != "derived" else "training the tokenizer of the derived language")
        options = TokenizerOptions(vocab_size=size)
        tokenizers.train(folder.request, tokenizer, options, derived=derived)
    trained = Tokenizer.load(tokenizer)
    wanted = {"kind": kind} | ({} if derived is None else {"derived": derived.identity})
    told = trained.recipe.get("derived") or {}
    if trained.size != size:
        what, same = f"has {trained.size:,} entries instead of {size:,}", "--vocab-size"
    elif derived is not None and told and told.get("limit") != derived.limit:
        what, same = "was trained on another number of rows", "--limit"
    elif any(trained.recipe.get(name) != value for name, value in wanted.items()):
        what, same = "was trained on the text of other languages", "--t and --tokenizer-for"
    else:
        folder.check(tokenizer, trained.recipe)
        return
    fix = f"give another --data folder, or the same {same}"
    raise StoreError(what, where=str(tokenizer), fix=fix, id="other-tokenizer")


def _of_texts(
    folder: DataFolder, tokenizer: Path, texts: TokenizerFor, given: Path | None = None
) -> tuple[Languages, dict[str, Path]]:
    """Return languages with one tokenizer that is trained on both texts, or with a tokenizer for each.

    given: the tokenizer of the derived language, None to train it.
    """
    pipeline, second = folder.pipeline, given or folder.path / DERIVED_TOKENIZER
    saved = _lexicon(folder)
    lexicon = pipeline.fit(saved=saved, where=str(folder.path / LEXICON))
    files = {TOKENIZER: tokenizer} | ({} if saved is None else {LEXICON: folder.path / LEXICON})
    if folder.paths.tokenizer is None:
        _trained(folder, tokenizer, folder.derived_text(lexicon, "both") if texts == "both" else None)
    source = OwnTokenizer.load(tokenizer)
    if source.kind != ("both" if texts == "both" else "source"):
        raise StoreError(
            f"was trained on the text of {_TEXTS[source.kind]}",
            where=str(tokenizer),
            fix="leave out --tokenizer, or give another one",
            id="other-tokenizer",
        )
    if texts == "both":
        return of_texts(pipeline, source, lexicon), files
    if given is None:
        _trained(folder, second, folder.derived_text(lexicon, "derived"), source.size)
    return of_texts(pipeline, source, lexicon, OwnTokenizer.load(second, source)), files | {DERIVED_TOKENIZER: second}


def _of_twin(folder: DataFolder, tokenizer: Path) -> tuple[Languages, dict[str, Path]]:
    """Return the languages of a tokenizer and its twin, and the files that a run keeps of them, by name."""
    twin = folder.path / TWIN
    if folder.paths.tokenizer is None:
        _trained(folder, tokenizer)
    if not TWINS.is_whole(twin):
        make_twin(tokenizer, str(twin_trans(folder.pipeline)), twin)
    languages = of_twin(folder.pipeline, OwnTokenizer.load(tokenizer), twin, "give another --data folder")
    return languages, {TOKENIZER: tokenizer, TWIN: twin}


def _of_checkpoint(folder: DataFolder, tokenizer: Path) -> tuple[Languages, dict[str, Path]]:
    """Return languages with the tokenizer of a checkpoint, and a lexicon that is fitted once for all runs."""
    own, lexicon, pipeline = folder.path / TOKENIZER, folder.path / LEXICON, folder.pipeline
    source = ForeignTokenizer.load(tokenizer)
    source.copy(own)
    saved = _lexicon(folder)
    languages = of_texts(pipeline, source, pipeline.fit(saved=saved, where=str(lexicon)))
    return languages, {TOKENIZER: own} | ({} if saved is None else {LEXICON: lexicon})


def _lexicon(folder: DataFolder) -> str | None:
    """Return the text of the lexicon, fitted or read from a file once for all runs; None if none is saved."""
    lexicon, pipeline = folder.path / LEXICON, folder.pipeline
    told = Artifact(kind=LEXICONS, path=lexicon, wanted={}).found(folder.warn)
    if told is not None:
        folder.check(lexicon, told)
        known = read_lexicon(lexicon)
        if not pipeline.needs_counts() and known != pipeline.save(pipeline.fit()):
            raise StoreError(
                f"is not the lexicon of {pipeline}: the data is of another --t, or a file that it names has changed",
                where=str(lexicon),
                fix="give another --data folder, or restore the file",
                id="other-data",
            )
        return known
    if pipeline.needs_counts():
        folder.required(lexicon)
        fitted = Source.open(pipeline, folder.request, parser=folder.paths.parser, trees=False).lexicon()
    else:
        fitted = pipeline.fit()
    saved = pipeline.save(fitted)
    if saved is not None:
        recipe = folder.required(lexicon).recipe
        recipe = sealed({**recipe, "files": {lexicon.name: sha256(saved.encode()).hexdigest()}})
        with disk(folder.path):
            folder.path.mkdir(parents=True, exist_ok=True)
        write_texts(lexicon, {lexicon.name: saved, LEXICONS.record_of(lexicon).name: record_text(recipe)})
    return saved


_TEXTS = {
    "source": "one language",
    "twin": "one language",
    "derived": "a derived language",
    "both": "both languages",
}
LEXICONS = kind_of_files("lexicon", fix="remove it and its recipe, and run again", id="other-data")
