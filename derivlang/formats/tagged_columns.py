"""The columns of a file of words and tags: which one holds the words and which one the tags, and what is a comment.

Mara  B-PER                    word, tag
Mara  NNP  I-NP  I-PER         word, …, tag (CoNLL 2003)
1  Mara  NNP  I-NP  I-PER      number, word, …, tag
1  Mara  B-PER  O              number, word, tag, nested tag (GermEval 2014)
1  Mara  B-PER  -  ann         number, word, tag, …, no tags (Universal NER)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

LOOKED_AT = 100  # sentences that decide the columns, and words that decide the prefix
WHITE = " \t\r\v\f"  # at the end of a line it means nothing
_WHITE_ENDS = re.compile(rf"(?<![{WHITE}])[{WHITE}]+$", re.MULTILINE)  # found at its first character only
# CoNLL 2003: a line that begins so is read as an empty one, unless it holds a carriage return, which is refused.
_MARK = re.compile(r"^-DOCSTART-[^\r\n]*$", re.MULTILINE)
TAG = re.compile(r"O|[BIESLUMW]-.+")
LANGUAGE_PREFIX = re.compile(r"[a-z]{2,3}:")
_ANY_TAG = re.compile(r"O|[BIESLUMW]([-_].+)?", re.IGNORECASE)
_CHUNK = re.compile(r"O|[BIESLUMW][-_](NP|VP|PP|ADVP|SBAR|ADJP|PRT|CONJP|INTJ|LST|UCP)", re.IGNORECASE)
_NUMBER = re.compile(r"\d+([-.]\d+)?")
_SPACES = re.compile(" +")
# The kinds of all columns, a letter each (`_kind`) -> the columns of words and tags; the first that matches.
_SHAPES = (
    (re.compile(r"#.t[^tc]+"), 1, 2),  # Universal NER
    (re.compile(r"#.tt"), 1, 2),  # GermEval 2014
    (re.compile(r"#.+"), 1, -1),
    (re.compile(r".+"), 0, -1),
)


@dataclass(frozen=True, slots=True)
class TaggedColumns:
    """The columns of a file. n: their number. word, tag: places of words and tags, from 0.

    first_number: the number of the first word of each sentence, 0 or 1, if the first column counts the words of every
    sentence. prefix: of the words, such as `en:`, if all have the same one. has_comments: whether there is a comment
    before one of the first sentences.
    """

    separator: str
    n: int
    word: int = 0
    tag: int = -1
    first_number: int | None = None
    prefix: str = ""
    has_comments: bool = False

    @property
    def left_out(self) -> str:
        """What is left out besides words and tags, for a message, or ""."""
        tag = self.tag % self.n
        others = [str(at + 1) for at in range(self.n) if at not in (self.word, tag)]
        if self.first_number is not None:
            others[0] += " (word numbers)"
        parts = [f"column{'s' * (len(others) > 1)} {', '.join(others)}"] if others else []
        parts += ["comments"] if self.has_comments else []
        read = f"words are read from column {self.word + 1}, and tags from column {tag + 1}"
        return f"{read}; left out: {' and '.join(parts)}" if parts else ""

    def plain(self, text: str) -> str:
        """Return lines with one separator between two columns: several spaces count as one."""
        return _SPACES.sub(" ", text) if self.separator == " " and "  " in text else text

    def split(self, line: str) -> list[str]:
        """Return the fields of a line."""
        return self.plain(line).split(self.separator)

    def without_comments(self, block: tuple[int, str]) -> tuple[int, str]:
        """Return the lines of a sentence without the comments before it, "" if nothing else is there."""
        number, text = block
        while self.is_comment(text.partition("\n")[0]):
            number, text = number + 1, text.partition("\n")[2]
        return number, text

    def is_comment(self, line: str) -> bool:
        """Return whether a line that stands before the first word of a sentence is a comment, and not a word.

        Where words have numbers, all lines that begin with `#` are. Otherwise a word has a tag in the last of all
        columns, or only a word in the first. In doubt it is a word, which may be an error: a comment is written as
        `# id = 1`, as `# id 12<TAB>domain=en` or as `#begin document 1`.

            # id = 1     comment        #<TAB>O     # O     #ACL<TAB>B-ORG     words        #ACL     #<TAB>X     errors
        """
        if line[:1] != "#":
            return False
        if self.first_number is not None:
            return True
        fields, tag = self.split(line), ends_with_tag(line)
        if tag and (len(fields) == self.n or len(line.split()) == 2):
            return False
        if self.separator == "\t":
            return " " in fields[0]
        return line[1:2] == " " or (" " in line and not tag)


def stripped(lines: str) -> str:
    """Return lines without white space at their ends, and without marks of documents."""
    return _MARK.sub("", _WHITE_ENDS.sub("", lines))


def find_columns(blocks: Sequence[tuple[int, str]]) -> TaggedColumns:
    """Return the columns of a file as its first sentences show them.

    The first line that does not begin with `#`, or else the first that ends with a tag, decides their number.
    """
    lines = [line for _, text in blocks for line in text.split("\n")]
    first = next((line for line in lines if line[0] != "#"), "") or next(filter(ends_with_tag, lines), "")
    columns = TaggedColumns(separator_of(first), 1)
    n = len(columns.split(first))
    sentences = [[row for row in map(columns.split, text.split("\n")) if row[0][:1] != "#"] for _, text in blocks]
    numbers = [[row[0] for row in rows] for rows in sentences if rows]
    first_number = _first_number(numbers) if n > 2 else None
    rows = [row for row in chain.from_iterable(sentences) if len(row) == n]
    kinds = ["." if first_number is None else "#", *(_kind([row[at] for row in rows]) for at in range(1, n))]
    word, tag = next((word, tag) for shape, word, tag in _SHAPES if shape.fullmatch("".join(kinds)))
    columns = replace(columns, n=n, word=word, tag=tag, first_number=first_number)
    of_words = chain.from_iterable(columns.without_comments(block)[1].split("\n") for block in blocks)
    few = map(columns.split, islice(filter(None, of_words), LOOKED_AT))
    words = [row[word] for row in few if len(row) > word]
    match = LANGUAGE_PREFIX.match(words[0]) if words else None
    prefix = match[0] if match and all(one.startswith(match[0]) for one in words) else ""
    has_comments = any(columns.is_comment(text.partition("\n")[0]) for _, text in blocks)
    return replace(columns, prefix=prefix, has_comments=has_comments)


def is_numbers(fields: Iterable[str]) -> bool:
    """Return whether all values may be numbers of words: `1`, or `1-2` and `1.1` as in CoNLL-U."""
    return all(map(_NUMBER.fullmatch, fields))


def ends_with_tag(line: str) -> bool:
    """Return whether the last field of a line is a tag of an entity, or O."""
    return TAG.fullmatch(line.split(separator_of(line))[-1]) is not None


def is_tag(value: str) -> bool:
    """Return whether a value is a tag of an entity in any usual form: `B-PER`, `i_per`, `B`, `O`."""
    return _ANY_TAG.fullmatch(value) is not None


def separator_of(line: str) -> str:
    return "\t" if "\t" in line else " "


def _first_number(sentences: Sequence[Sequence[str]]) -> int | None:
    """Return the number of the first word of each sentence if the fields count the words of all of them.

    1 2 3, 1 2   ->   1       1 2 3, the cat   ->   None       1, 1 (nothing is counted)   ->   None
    """
    for first in (0, 1):
        counts = all(fields == [str(first + at) for at in range(len(fields))] for fields in sentences)
        if counts and max(map(len, sentences), default=0) > 1:
            return first
    return None


def _kind(values: Sequence[str]) -> str:
    """Return a letter for the values of a column: t tags of entities, c tags of chunks, . anything else."""
    if not all(map(is_tag, values)):
        return "."
    return "c" if {*values} - {"O"} and all(map(_CHUNK.fullmatch, values)) else "t"
