"""What an objective needs besides its streams. A need checks what can be known early, and then prepares its value.

class MyObjective(Objective):
    def needs(self):
        return (DICTIONARY,)
    def state(self, model, context):
        pairs = context.found[DICTIONARY.name].pairs
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from derivlang.core.errors import UsageError
from derivlang.pipeline import Pipeline
from derivlang.training.languages import TOKENIZER, is_mapped, twin_trans
from derivlang.training.settings import CHOSEN
from derivlang.training.streams.base import ALIGNERS, DICTIONARY_KEY, GOLD, LINKS_KEY

if TYPE_CHECKING:
    from derivlang.training.prepare import Prepared
    from derivlang.training.settings import TrainingSettings


class Need(ABC):
    """A need. name: under which objectives find its value in `Context.found`."""

    name: ClassVar[str]

    def check(self, settings: TrainingSettings) -> None:
        """Raise UsageError if the settings exclude it; called before anything is made."""
        return None

    def reads(self, files: Collection[str]) -> Set[str]:
        """Return which settings of CHOSEN its value depends on: all, unless a need says otherwise.

        files: which of "dictionary" and "pairs" are given as files, and not made.
        """
        return CHOSEN

    def reads_text(self, files: Collection[str]) -> bool:
        """Return whether its value is made of the corpus: it is, unless a need says otherwise. files: as of `reads`."""
        return True

    @abstractmethod
    def prepare(self, prepared: Prepared) -> Any:
        """Return its value, made from the run's inputs. Raise DerivlangError if it is missing."""


class DictionaryNeed(Need):
    """The bilingual dictionary of the run: `Translations`. words: whether words will do, where no entry has a twin."""

    name = DICTIONARY_KEY

    def __init__(self, *, words: bool = False):
        self.words = words

    def reads(self, files: Collection[str]) -> Set[str]:
        return set() if "dictionary" in files else {"coverage", "dictionary_by", "dictionary_seed"}

    def reads_text(self, files: Collection[str]) -> bool:
        return "dictionary" not in files

    def check(self, settings: TrainingSettings) -> None:
        if self.words or settings.language:
            return
        if settings.tokenizer_for is not None:
            raise _no_twin(f"with --tokenizer-for {settings.tokenizer_for} there is none")
        pipeline = Pipeline.parse(settings.spec)
        if not is_mapped(pipeline):
            raise _no_twin(f"{settings.spec} has no twin")
        _check_differs(pipeline)

    def prepare(self, prepared: Prepared) -> Any:
        without = f"the tokenizer of {prepared.files[TOKENIZER]} has no twin"
        if prepared.pairs is None and self.words:
            raise UsageError(
                f"{without}, so the objective needs a dictionary of words",
                where="--objective",
                fix="give a dictionary with --dictionary, e.g. of derivlang dict or MUSE",
                id="no-dictionary",
            )
        if prepared.pairs is None or (prepared.pairs.words and not self.words):
            raise _no_twin(without)
        if prepared.languages.are_mapped and prepared.pairs.spelling is None:
            _check_differs(prepared.languages.pipeline)
        return prepared.pairs


def _no_twin(why: str) -> UsageError:
    return UsageError(
        f"the objective needs a dictionary of the entries of a tokenizer and its twin, but {why}",
        where="--objective",
        fix="give another objective, e.g. mlm or tlm, or leave out --init, --tokenizer and --tokenizer-for; with "
        "--language, give dictionaries of words: --dictionary en-fr=FILE",
        id="no-twin",
    )


def _check_differs(pipeline: Pipeline) -> None:
    """Raise UsageError if both languages have the same words, so that a dictionary translates nothing."""
    if twin_trans(pipeline).overlap != 100:
        return
    raise UsageError(
        f"{pipeline} changes no word, so a dictionary translates nothing",
        where="--objective",
        fix="give an objective without a dictionary, e.g. mlm or xlm, or words of another script: --t trans,…",
        id="no-lexicon",
    )


class LanguageIdsNeed(Need):
    """A model that gets the language of each position."""

    name = "language-ids"

    def reads(self, files: Collection[str]) -> Set[str]:
        return set()

    def reads_text(self, files: Collection[str]) -> bool:
        return False

    def check(self, settings: TrainingSettings) -> None:
        if not settings.language_ids:
            raise UsageError(
                f"{settings.objective} needs language ids",
                where="--objective",
                fix="leave out --no-language-ids",
                id="needs-language-ids",
            )

    def prepare(self, prepared: Prepared) -> Any:
        return True


class LinksNeed(Need):
    """Links of the run's sentence pairs, of some kind: gold, hmm, eflomal, or a file.

    parameter: the name of the kind in messages. Its value is the folder in which the links of an aligner are kept
    (streams/linked.py).
    """

    name = LINKS_KEY

    def __init__(self, kind: str, parameter: str = LINKS_KEY):
        self.kind, self.parameter = kind, parameter

    def reads(self, files: Collection[str]) -> Set[str]:
        return set()  # its stream reads the links of the pairs

    def reads_text(self, files: Collection[str]) -> bool:
        return False

    def check(self, settings: TrainingSettings) -> None:
        if self.kind not in (GOLD, *ALIGNERS) and not Path(self.kind).is_file():
            raise UsageError(
                f"{self.parameter}={self.kind} is neither {GOLD}, {', '.join(ALIGNERS)} nor a file that is there",
                where="--objective",
                fix="give a file of Pharaoh links, a line per pair, e.g. of derivlang align train",
                id="missing-file",
            )

    def prepare(self, prepared: Prepared) -> Any:
        return prepared.made


DICTIONARY = DictionaryNeed()
ANY_DICTIONARY = DictionaryNeed(words=True)
LANGUAGE_IDS = LanguageIdsNeed()
