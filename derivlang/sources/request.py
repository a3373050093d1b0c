"""What the user asks of a source. Help pages import this module, which therefore imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from derivlang.core.errors import UsageError
from derivlang.core.rules import Mode
from derivlang.core.settings import setting, typed


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """What the user asks of a source: its name or path, where it lies and how it is read."""

    source: str
    data_dir: Path | None = setting(None, "Folder of the corpora.", unset="$DERIVLANG_DATA, then the hub")
    mode: Mode | None = setting(None, "Tokenizer of raw text.", option="--words", key="words")
    language: str | None = setting(
        None, "Language of raw text, for spaCy's tokenizer.", option="--lang", key="lang", unset="the source's"
    )
    encoding: str = setting("utf-8", "Encoding of text files.")
    format: str | None = setting(
        None, "Format of the files, such as tagged; ls lists them.", key="source_format", unset="by their suffixes"
    )
    texts: tuple[str, ...] = setting(
        (), "Column of raw text, if its name does not say so.", option="--text-column", key="text_column"
    )
    words: tuple[str, ...] = setting(
        (), "Column of word lists, if its name does not say so.", option="--word-column", key="word_column"
    )
    labels: tuple[str, ...] = setting(
        (),
        "What a column of lists holds, if its values do not say so: NAME=entities, NAME=tags (a value for each word) "
        "or NAME=value (it does not move with the words).",
        option="--label-column",
        key="label_column",
    )
    header: bool | None = setting(
        None, "Whether the first row of a TSV or CSV file names its columns.", unset="if it holds known names"
    )
    names: tuple[str, ...] = setting(
        (),
        "Names for the columns of a TSV or CSV file, e.g. text,label.",
        option="--column-names",
        key="column_names",
        commas=True,
    )
    quoting: bool = setting(False, "Fields of a TSV file are quoted as in CSV.")
    delimiter: str | None = setting(
        None, "Separator of the fields of a CSV file, e.g. ';' or tab.", unset="found where it is clear"
    )

    def refuse(self, why: str, *, tables: bool = False, files: bool = True) -> None:
        """Raise UsageError for options about columns that have no effect.

        tables: those for words and text have an effect. files: so has the format of files.
        """
        without_effect = (
            *(() if files else ("format",)),
            *("header", "names", "quoting", "delimiter"),
            *(() if tables else ("words", "texts", "labels")),
        )
        for word in typed(self, without_effect):
            option = word.partition("=")[0]
            raise UsageError(why, where=option, fix=f"leave {option} out", id="unused-option")
