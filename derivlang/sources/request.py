"""What the user asks of a source. Help pages import this module, which therefore imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from derivlang.core.errors import UsageError
from derivlang.core.settings import Settings, setting, typed
from derivlang.core.takes import Mode, Names
from derivlang.formats.places import OptionalPath


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DataDir(Settings):
    """Where named sources lie."""

    data_dir: OptionalPath = setting(None, "Folder of the corpora.", unset="$DERIVLANG_DATA, then the hub")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TextOptions(Settings):
    """How a source is read."""

    heading: ClassVar[str] = "Source"
    words: Mode | None = setting(None, "Tokenizer of raw text.")
    lang: str | None = setting(None, "Language of raw text, for spaCy's tokenizer.", unset="the source's")
    encoding: str = setting("utf-8", "Encoding of text files.")
    format: str | None = setting(None, "Format of the files, such as tagged; ls lists them.", unset="by their suffixes")
    text_column: Names = setting((), "Column of raw text, if its name does not say so.")
    word_column: Names = setting((), "Column of word lists, if its name does not say so.")
    label_column: Names = setting(
        (),
        "What a column of lists holds, if its values do not say so: NAME=entities, NAME=tags (a value for each "
        "word), NAME=heads (numbers of other words, from 1) or NAME=value (it does not move with the words).",
    )
    header: bool | None = setting(
        None, "Whether the first row of a TSV or CSV file names its columns.", unset="if it holds known names"
    )
    column_names: Names = setting((), "Names for the columns of a TSV or CSV file, e.g. text,label.", commas=True)
    quoting: bool | None = setting(
        None, "Whether fields of a TSV file are quoted as in CSV.", unset="no, and refused where they look so"
    )
    delimiter: str | None = setting(
        None, "Separator of the fields of a CSV file, e.g. ';' or tab.", unset="found where it is clear"
    )


class SourceOptions(TextOptions, DataDir):
    """Where a source lies and how it is read."""


@dataclass(frozen=True)
class SourceRequest(SourceOptions):
    """What the user asks of a source: its name or path, where it lies and how it is read."""

    source: str

    def refuse(self, why: str, *, tables: bool = False, files: bool = True) -> None:
        """Raise UsageError for options about columns that have no effect.

        tables: those for words and text have an effect. files: so has the format of files.
        """
        without_effect = (
            *(() if files else ("format",)),
            *("header", "column_names", "quoting", "delimiter"),
            *(() if tables else ("word_column", "text_column", "label_column")),
        )
        for word in typed(self, without_effect):
            option = word.partition("=")[0]
            raise UsageError(why, where=option, fix=f"leave {option} out", id="unused-option")
