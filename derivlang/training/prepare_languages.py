"""Make the tokenizers of the languages of a run, with a twin or a lexicon, or reuse what the folder of data holds.

a script, or only an order     tokenizer-HASH  twin-HASH           of the source's text
any other language             tokenizer-HASH  tokenizer-HASH      of the text of each
--tokenizer-for both           tokenizer-HASH                      of both texts
--language with other texts    tokenizer-HASH                      of all texts
a checkpoint's tokenizer       tokenizer-HASH                      which reads both
lexicon-HASH                   beside them, if one was fitted or read from a file
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.engine.batches import Source
from derivlang.lexical import train as tokenizers
from derivlang.lexical.foreign import ForeignTokenizer, is_foreign
from derivlang.lexical.own import OwnTokenizer
from derivlang.lexical.settings import TokenizerOptions
from derivlang.lexical.tokenizer import FORMAT
from derivlang.lexical.train import TextToDerive
from derivlang.lexical.twin_folder import make_twin
from derivlang.pipeline import Pipeline
from derivlang.sources.find import name_of, request_of_text
from derivlang.sources.request import SourceRequest
from derivlang.training.data_folder import LANGUAGES, DataFolder, Origin
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
from derivlang.transforms.fitting import read_lexicon


def languages_of(folder: DataFolder) -> tuple[Languages, dict[str, Path]]:
    """Return the languages of a folder, and the files that a run keeps of them, by name."""
    if not folder.settings.language:
        return _pair(folder)
    if texts := folder.other_texts():
        folder = replace(folder, paths=replace(folder.paths, tokenizer=_trained(folder, texts=texts)))
    files: dict[str, Path] = {}
    pairs = []
    for language in folder.settings.asked[1:]:
        pair, own = _pair(folder.of(language), language.tokenizer)
        pairs.append((language, pair))
        files |= {name if name == TOKENIZER else f"{LANGUAGES}/{language.name}/{name}": at for name, at in own.items()}
    return of_several(pairs), files


def _pair(folder: DataFolder, second: str = "") -> tuple[Languages, dict[str, Path]]:
    """Return the source and another language, and the files of both. second: a tokenizer of the other language."""
    asked, tokenizer = folder.settings.tokenizer_for, folder.paths.tokenizer
    if second:
        return _of_texts(folder, "each", Path(second))
    if tokenizer is not None and is_foreign(tokenizer):
        return _of_checkpoint(folder, tokenizer)
    if asked is None and tokenizer is not None and OwnTokenizer.load(tokenizer).kind == "both":
        asked = "both"
    if asked is None and is_mapped(folder.pipeline):
        return _of_twin(folder)
    return _of_texts(folder, asked or "each")


def _trained(
    folder: DataFolder,
    derived: TextToDerive | None = None,
    size: int | None = None,
    texts: Sequence[SourceRequest] = (),
) -> Path:
    """Return the folder of a tokenizer.

    derived: as of `tokenizers.train`. size: in entries, None for the settings'. texts: others to train on.
    """
    options = TokenizerOptions(vocab_size=size or folder.settings.vocab_size)
    kind = "source" if derived is None else derived.kind
    recipe: dict[str, Any] = {
        "rules": FORMAT,
        "kind": kind,
        "vocab_size": options.vocab_size,
        "min_frequency": options.min_frequency,
        "derived": None if derived is None else derived.identity,
    }
    if derived is not None and derived.other is not None:
        recipe["other"] = Origin.of(derived.other).recipe
    if texts:
        recipe |= {"kind": "several", "texts": [name_of(text.source) for text in texts]}
        recipe["others"] = [Origin.of(request_of_text(text, text.source)).recipe for text in texts]
    what = "training the tokenizer" if kind != "derived" else "training the tokenizer of the derived language"
    return folder.made(
        "tokenizer",
        recipe,
        lambda fresh: tokenizers.train(folder.request, fresh, options, texts=texts, derived=derived),
        what,
    )


def _of_texts(folder: DataFolder, texts: TokenizerFor, given: Path | None = None) -> tuple[Languages, dict[str, Path]]:
    """Return languages with one tokenizer that is trained on both texts, or with a tokenizer for each.

    given: the tokenizer of the derived language, None to train it.
    """
    pipeline, (saved, files) = folder.pipeline, _lexicon(folder)
    lexicon = pipeline.fit(saved=saved)
    tokenizer = folder.paths.tokenizer or _trained(
        folder, folder.derived_text(lexicon, "both") if texts == "both" else None
    )
    source, files = OwnTokenizer.load(tokenizer), {TOKENIZER: tokenizer, **files}
    if source.kind != ("both" if texts == "both" else "source"):
        raise StoreError(
            f"was trained on the text of {_TEXTS[source.kind]}",
            where=str(tokenizer),
            fix="leave out --tokenizer, or give another one",
            id="other-tokenizer",
        )
    if texts == "both":
        return of_texts(pipeline, source, lexicon), files
    second = given or _trained(folder, folder.derived_text(lexicon, "derived"), source.size)
    return of_texts(pipeline, source, lexicon, OwnTokenizer.load(second, source)), files | {DERIVED_TOKENIZER: second}


def _of_twin(folder: DataFolder) -> tuple[Languages, dict[str, Path]]:
    """Return the languages of a tokenizer and its twin, and the files that a run keeps of them, by name."""
    tokenizer, trans = folder.paths.tokenizer or _trained(folder), twin_trans(folder.pipeline)
    source = OwnTokenizer.load(tokenizer)
    recipe = {"tokenizer": source.tokenizer.recipe["sha256"], **identity_of(Pipeline((trans,)))}
    twin = folder.made("twin", recipe, lambda fresh: make_twin(tokenizer, str(trans), fresh))
    return of_twin(folder.pipeline, source, twin, "remove it"), {TOKENIZER: tokenizer, TWIN: twin}


def _of_checkpoint(folder: DataFolder, tokenizer: Path) -> tuple[Languages, dict[str, Path]]:
    """Return languages with the tokenizer of a checkpoint, and a lexicon that is fitted once for all runs."""
    pipeline, (saved, files) = folder.pipeline, _lexicon(folder)
    source = ForeignTokenizer.load(tokenizer)
    own = folder.made("tokenizer", {"of": source.fingerprint}, source.save)
    return of_texts(pipeline, source, pipeline.fit(saved=saved)), {TOKENIZER: own, **files}


def _lexicon(folder: DataFolder) -> tuple[str | None, dict[str, Path]]:
    """Return the text of the lexicon, fitted or read from a file once for all runs, and its file by name.

    None and {} if none is saved.
    """
    pipeline = folder.pipeline
    if not pipeline.needs_counts() and pipeline.save(pipeline.fit()) is None:
        return None, {}

    def write(fresh: Path) -> None:
        source = Source.open(pipeline, folder.request, parser=folder.paths.parser, trees=False)
        text = pipeline.save(source.lexicon())
        (fresh / LEXICON).write_text(text or "", "utf-8", newline="\n")

    file = folder.made("lexicon", identity_of(pipeline), write) / LEXICON
    return read_lexicon(file), {LEXICON: file}


def identity_of(pipeline: Pipeline) -> dict[str, str]:
    """Return what a recipe says of a pipeline; the fingerprint covers its rules and the files that it names."""
    return {"spec": pipeline.stored, "fingerprint": pipeline.fingerprint()}


_TEXTS = {
    "source": "one language",
    "twin": "one language",
    "derived": "a derived language",
    "both": "both languages",
}
