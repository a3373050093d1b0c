"""Adapter to Stanza (Qi et al. 2020), which the papers on derived languages used.

The parser is named `stanza`, or `stanza:DIR` for models in another folder. It keeps the words as given, parses
sentences of similar length together, and uses a GPU if there is one. Nothing is downloaded. Stanza unpickles some parts
of its models, which may run code: a folder must be one that the user trusts, and no file of derivlang names one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError
from derivlang.core.parse_errors import reason
from derivlang.parsing.foreign import ForeignParser, Tree, fingerprint, missing_package, tensors_only


def load_stanza(folder: str | None, language: str) -> ForeignParser:
    """Load Stanza's default models for a language. folder: where they are; None for Stanza's own folder.

    Raises DerivlangError missing-package, and DataError parser-missing with the command that downloads the models.
    """
    name = "stanza" if folder is None else f"stanza:{folder}"
    try:
        import stanza
    except ImportError:
        raise missing_package(name, "stanza") from None
    options: dict[str, Any] = {} if folder is None else {"dir": folder}
    try:
        with nullcontext() if folder is None else tensors_only():
            pipeline = stanza.Pipeline(
                lang=language,
                processors="tokenize,pos,lemma,depparse",  # depparse needs lemmas
                tokenize_pretokenized=True,
                download_method=None,
                verbose=False,
                **options,
            )
    except Exception as error:  # a damaged model may raise any kind
        place = "" if folder is None else f", model_dir={folder!r}"
        raise DataError(
            f"cannot load Stanza's models for tagging and parsing {language!r}: {reason(error)}",
            where=f"--parser {name}",
            fix=f'download them (500 MB): python -c "import stanza; stanza.download({language!r}{place})"',
            id="parser-missing",
        ) from error
    return stanza_parser(pipeline, name, language, stanza.__version__)


def stanza_parser(pipeline: Any, name: str, language: str, version: str) -> ForeignParser:
    """Return the parser of a Stanza pipeline that takes lists of words. version: of the package, for the fingerprint.

    The fingerprint also covers the content of the model files, so that a new download makes new parses.
    """

    def run(sentences: list[list[str]]) -> Iterator[Tree]:
        for sentence in pipeline(sentences).sentences:
            words = sentence.words
            yield [w.upos for w in words], [w.head for w in words], [w.deprel for w in words]

    paths = {str(value) for key, value in pipeline.config.items() if key.endswith("_path") and isinstance(value, str)}
    files = [Path(path) for path in sorted(paths) if Path(path).is_file()]
    return ForeignParser(name, language, fingerprint(["stanza", version, language], files), run)
