"""The registry of readers: whatever takes bytes that derivlang did not write, with small real files to begin from.

A reader may raise DerivlangError and nothing else. It returns None, or a sentence about a fault of its own, such as a
damage that `verify` does not find. `modules` names the modules that it tries: `tests/test_fuzz.py` compares them with
the package's source, so that a module that starts to read files must join a reader here.
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from derivlang.core.seal import sealed
from derivlang.engine.make import make
from derivlang.engine.options import MakeOptions
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find
from derivlang.sources.read import tables
from derivlang.sources.request import SourceRequest
from tests.fuzz.forge import forge_parser, forge_run, forge_scores, seal
from tests.real import SHARED

if TYPE_CHECKING:
    from derivlang.evaluation.cell import FinetuneCell
    from derivlang.studies.file import StudyFile
    from derivlang.studies.plan import PlannedCommand

DEMO = Path(__file__).parents[2] / "derivlang" / "sources" / "demo"
GRAMMARS = Path(__file__).parents[2] / "grammars"


@dataclass(frozen=True, slots=True)
class Reader:
    """seeds: small valid files. read: (a fresh folder, the bytes) -> None or what went wrong; kind: see mutate.py."""

    name: str
    kind: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[Path, bytes], str | None]
    modules: tuple[str, ...]


READERS: dict[str, Reader] = {}


def reader(
    name: str, kind: str, seeds: Callable[[], list[bytes]], *modules: str
) -> Callable[[Callable[[Path, bytes], str | None]], None]:
    """Register the decorated function as a reader."""

    def add(read: Callable[[Path, bytes], str | None]) -> None:
        READERS[name] = Reader(name, kind, cache(seeds), read, modules)

    return add


def files(*names: str, size: int = 3_000) -> Callable[[], list[bytes]]:
    """The beginnings of real files that are there: of the demo, the grammars, or the data folder. Cut after a line."""

    def seeds() -> list[bytes]:
        out = []
        for name in names:
            for path in (DEMO / name, GRAMMARS / name, SHARED / name):
                if path.is_file():
                    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                    cut = data.rfind(b"\n\n", 0, size) if ".conllu" in name else data.rfind(b"\n", 0, size)
                    out.append(data if len(data) <= size else data[: cut + 1])
        return out

    return seeds


# ---- corpora: every format, by the way that `make` takes


def corpus(folder: Path, name: str, data: bytes, **options: object) -> str | None:
    """Recognise a file, read all its rows, derive labelled ones in order and back, and count its documents."""
    from derivlang.core.from_table import from_table
    from derivlang.core.lexicon import Lexicon
    from derivlang.core.to_table import to_table
    from derivlang.sources.corpus import FileSpan
    from derivlang.sources.read import Reading, batches, count_documents

    pipeline, lexicon = Pipeline.parse("inv"), Lexicon()

    path = folder / name
    path.write_bytes(data)
    found = find(SourceRequest(str(path), **options))  # type: ignore[arg-type]
    for part in found.parts:
        for batch in batches(found, [FileSpan(part)], Reading(found.splitter(), "utf-8", repair_tags=False)):
            assert batch.n_words >= 0
            if not found.schema.running:
                made = pipeline.derive(batch, lexicon)
                rows = to_table(made.source, made.derived, made.order, found.schema, lexicon, has_order=True)
                from_table(pa.table(rows), found.schema, lexicon)
        count_documents(found, FileSpan(part), "utf-8")
    return None


_PAIRS = files("demo-nli-dev.tsv", "demo-nli-test.tsv")
_TREES = files("demo-ud-dev.conllu", "ud/UD_French-GSD/fr_gsd-ud-dev.conllu", "ud/UD_Hebrew-HTB/he_htb-ud-dev.conllu")
_UNSPACED = "私 は 猫 が 好き です 。\nThere is a cat.\nฉัน ชอบ แมว\n".encode()
_FILES = files("demo-nli-train.tsv", "text/wikitext-2/wiki.valid.tokens")


def _text() -> list[bytes]:
    """Running text, which tabs would make a table."""
    return [seed.replace(b"\t", b" ") for seed in _FILES()]


@reader("text", "text", lambda: [*_text(), _UNSPACED], "formats.text", "formats.contents",
        "formats.opening", "formats.pieces", "sources.find", "sources.folder")  # fmt: skip
def _(folder: Path, data: bytes) -> str | None:
    return corpus(folder, "a.txt", data, words="unicode")


@reader("tokens", "text", _text)
def _(folder: Path, data: bytes) -> str | None:
    return corpus(folder, "a.tokens", data)


@reader("text.gz", "gz", lambda: [gzip.compress(seed) for seed in _text()])
def _(folder: Path, data: bytes) -> str | None:
    return corpus(folder, "a.tokens.gz", data)


@reader("conllu", "text", _TREES, "formats.conllu", "parsing.treebank", "grammar.treebank")
def _(folder: Path, data: bytes) -> str | None:
    return corpus(folder, "a.conllu", data)


_NUMBERED = b"# a\tb\n1\tDas\tO\tO\n2\tBonn\tB-LOC\tO\n\n#c\n1\t#\tB-PER\tO \n \n"
_TAGS = b"# id 1\tdomain=en\nAnn\tB-PER\nruns\tO\n\n# id = 2\n#\tO\nNew\tB-LOC\nYork\tI-LOC\n\n" * 3


@reader("tagged", "text", lambda: [_TAGS, _TAGS.replace(b"I-LOC", b"E-LOC").replace(b"B-PER", b"S-PER"), _NUMBERED],
        "formats.tagged", "formats.tagged_columns")  # fmt: skip
def _(folder: Path, data: bytes) -> str | None:
    return corpus(folder, "a.tsv", data)


@reader("tsv", "text", lambda: [b"premise\thypothesis\tlabel\n" + seed for seed in _PAIRS()], "formats.delimited")
def _(folder: Path, data: bytes) -> str | None:
    return corpus(folder, "a.tsv", data)


@reader("tsv-columns", "text", _PAIRS)
def _(folder: Path, data: bytes) -> str | None:
    return corpus(folder, "a.tsv", data, column_names=("premise", "hypothesis", "label"))


_CSV = b'text,label\n"A ""b"", c",x\nAnn runs.,y\n"two\nlines",x\n' * 2


@reader("csv", "text", lambda: [_CSV, _CSV.replace(b",", b";"), b"text,c0,c1,c2\nA b.,1,2,3\n"],
        "formats.delimited", "formats.header")  # fmt: skip
def _(folder: Path, data: bytes) -> str | None:
    return corpus(folder, "a.csv", data)


@reader("jsonl", "jsonl", lambda: [_json_lines(), *map(_as_json_lines, _structured())], "formats.jsonl",
        "core.columns", "core.from_table")  # fmt: skip
def _(folder: Path, data: bytes) -> str | None:
    return corpus(folder, "a.jsonl", data, words="space")


_BRACKETS = b"( (S (NP-SBJ (DT The) (NN dog))\n  (VP (VBZ sees) (NP (-NONE- *T*-1)) 1\\/2) (. .)))\n(S (-LRB- -LRB-))\n"


@reader("bracketed", "text", lambda: [_BRACKETS * 3, b"(S (NP Ann) (VP sleeps))\n" * 5], "formats.bracketed")
def _(folder: Path, data: bytes) -> str | None:
    return corpus(folder, "a.mrg", data)


@reader("squad", "json", files("demo-qa-test.json", size=100_000), "formats.squad")
def _(folder: Path, data: bytes) -> str | None:
    return corpus(folder, "a.json", data)


@reader(
    "parquet",
    "parquet",
    lambda: [
        _parquet(_rows()),
        _parquet(_rows().drop_columns("label")),
        *(_parquet(pa.Table.from_pylist(rows)) for rows in _structured()),
    ],
    "formats.parquet",
    "sources.infer",
    "sources.labels",
)
def _(folder: Path, data: bytes) -> str | None:
    return corpus(folder, "a.parquet", data, words="space")


def _json_lines() -> bytes:
    rows = [
        {"tokens": ["Ann", "runs", "."], "upos": ["PROPN", "VERB", "PUNCT"], "label": i % 3, "text": None}
        for i in range(9)
    ]
    return _as_json_lines(rows)


def _structured() -> list[list[dict[str, Any]]]:
    """Rows with answers, with trees, and with many columns."""
    answers = [
        {"text": ["Ann"], "answer_start": [0]},
        None,
        {"text": [], "answer_start": []},
        {"text": ["runs .", "Ann"], "answer_start": [4, 0]},
        {"text": None, "answer_start": None},
    ]
    asked = [
        {"context": "Ann runs .", "question": "Who ?", "answers": found, "id": f"q{i}"}
        for i, found in enumerate(answers)
    ]
    line = dict.fromkeys(("form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"), "_")
    trees = [
        {
            "tokens": ["Ann", "runs", "."],
            "head": [2, 0, 2],
            "deprel": ["nsubj", "root", "punct"],
            "deps": ["2:nsubj|1.1:x", "0:root", "_"],
            "misc": ["SpaceAfter=No", "_", "_"],
            "mwt": [line | {"id": "2-3"}],
            "empty_nodes": [line | {"id": "1.1", "deps": "2:x"}],
        }
    ] * 3
    wide = {f"c{i}": i for i in range(100)} | {f"l{i}": ["x", "y"] for i in range(50)}
    return [asked, trees, [{"tokens": ["Ann", "runs"]} | wide] * 2]


def _as_json_lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _rows() -> pa.Table:
    return pa.table({"tokens": [["Ann", "runs", "."], ["Yes"]] * 4, "ner_tags": [["B-PER", "O", "O"], ["O"]] * 4,
                     "label": [0, 1] * 4})  # fmt: skip


def _parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


# ---- derived sets: manifest, shards, lexicon, what an interrupted run left


@cache
def derived_set(spec: str = "trans:overlap=20,inv", source: str = "demo") -> Path:
    """A small set with labels, trees, entities and a lexicon."""
    out = Path(mkdtemp(prefix="derivlang-tests-")) / "set"
    make(Pipeline.parse(spec), SourceRequest(source), MakeOptions(out, splits=("test",)))
    return out


def with_file(folder: Path, name: str, data: bytes) -> Path:
    """A copy of the set with one file changed."""
    out = folder / "set"
    shutil.copytree(derived_set(), out)
    (out / name).write_bytes(data)
    return out


def use(folder: Path, *, changed: bool) -> str | None:
    """Verify a set, and undo it; a changed one that verifies is a fault."""
    from derivlang.core.errors import DerivlangError
    from derivlang.store.export import undo
    from derivlang.store.verify import verify

    with suppress(DerivlangError):
        undo(folder, None, folder.parent / "undone")
    right = verify(folder)["ok"]
    return "verify calls it right" if changed and right else None


def _same_json(a: bytes, b: bytes) -> bool:
    try:
        return bool(json.loads(a) == json.loads(b))
    except (ValueError, RecursionError):
        return False


@reader(
    "manifest",
    "json",
    lambda: [(derived_set() / "derivlang.json").read_bytes()],
    "store.manifest",
    "store.verify",
    "store.record",
)
def _(folder: Path, data: bytes) -> str | None:
    true = (derived_set() / "derivlang.json").read_bytes()
    return use(with_file(folder, "derivlang.json", data), changed=not _same_json(true, data))


@reader(
    "lexicon",
    "text",
    lambda: [(derived_set() / "lexicon.tsv").read_bytes()],
    "transforms.trans",
    "transforms.fitting",
    "pipeline",
)
def _(folder: Path, data: bytes) -> str | None:
    true = (derived_set() / "lexicon.tsv").read_bytes()
    return use(with_file(folder, "lexicon.tsv", data), changed=true != data)


def _shard() -> Path:
    return next((derived_set() / "data").iterdir())


@reader("shard", "parquet", lambda: [_shard().read_bytes()], "store.shards", "store.manifest", "core.from_table")
def _(folder: Path, data: bytes) -> str | None:
    return use(with_file(folder, f"data/{_shard().name}", data), changed=data != _shard().read_bytes())


@reader("shard, its hash forged", "parquet", lambda: [_shard().read_bytes()])
def _(folder: Path, data: bytes) -> str | None:
    """The damage reaches what lies behind the hash: rows, offsets, columns."""
    from tests.fuzz.forge import forge

    out = with_file(folder, f"data/{_shard().name}", data)
    forge(out)
    return use(out, changed=False)


@reader("derived set as a source", "parquet", lambda: [_shard().read_bytes()])
def _(folder: Path, data: bytes) -> str | None:
    from tests.fuzz.forge import forge

    out = with_file(folder, f"data/{_shard().name}", data)
    forge(out)
    with patch("derivlang.formats.inspection._TICK", 0):  # do not wait until the clock of the file system moves
        make(Pipeline.parse("inv"), SourceRequest(str(out)), MakeOptions(folder / "again"))
    return None


def _unfinished(folder: Path, name: str, data: bytes) -> str | None:
    """A run that was stopped, one of its own files damaged: the same command goes on, or makes it anew."""
    out = folder / "set"
    shutil.copytree(_stopped(), out)
    (out / ".derivlang" / name).write_bytes(data)
    text = _stopped().parent / "a.tokens"
    make(Pipeline.parse("inv"), SourceRequest(str(text)), MakeOptions(out, shard_tokens=40))
    shards = {path.name: path.read_bytes() for path in (out / "data").iterdir()}
    whole = {path.name: path.read_bytes() for path in (_stopped().parent / "whole" / "data").iterdir()}
    return None if shards == whole and not (out / ".derivlang").exists() else "another set than that of one run"


@cache
def _stopped() -> Path:
    """A run of three shards that was stopped after two; beside it its source, and the whole set."""
    from derivlang.engine import engines
    from derivlang.engine.job import run_task

    folder = Path(mkdtemp(prefix="derivlang-tests-"))
    (folder / "a.tokens").write_text("The cat sat on the mat .\nAnn saw it .\n" * 8, "utf-8")
    request, done = SourceRequest(str(folder / "a.tokens")), []

    def stop(*given: Any) -> Any:
        done.append(run_task(*given))
        if len(done) == 2:
            raise KeyboardInterrupt
        return done[-1]

    make(Pipeline.parse("inv"), request, MakeOptions(folder / "whole", shard_tokens=40))
    with suppress(KeyboardInterrupt), patch.object(engines, "run_task", stop):
        make(Pipeline.parse("inv"), request, MakeOptions(folder / "set", shard_tokens=40))
    return folder / "set"


@reader("plan", "json", lambda: [(_stopped() / ".derivlang" / "plan.json").read_bytes()], "store.set_plan")
def _(folder: Path, data: bytes) -> str | None:
    return _unfinished(folder, "plan.json", data)


def _record() -> Path:
    return sorted((_stopped() / ".derivlang").glob("*/*.record"))[0]


@reader("record of a task", "ipc", lambda: [_record().read_bytes()], "store.set_plan")
def _(folder: Path, data: bytes) -> str | None:
    return _unfinished(folder, f"{_record().parent.name}/{_record().name}", data)


# ---- word orders, dictionaries, links, tokenizers


def _grammar_seed() -> list[bytes]:
    """The beginning of a shipped grammar, without the number of weights that the whole has."""
    (seed,) = files("fr.grammar.tsv", size=6_000)()
    return [b"".join(line for line in seed.splitlines(True) if not line.startswith(b"# weights"))]


@reader("grammar", "text", _grammar_seed, "grammar.grammar", "formats.opening")
def _(folder: Path, data: bytes) -> str | None:
    return _grammar(folder / "x.grammar.tsv", data)


@reader("grammar.gz", "gz", lambda: [gzip.compress(seed) for seed in _grammar_seed()])
def _(folder: Path, data: bytes) -> str | None:
    return _grammar(folder / "x.grammar.tsv.gz", data)


@reader("orm", "text", lambda: [_ORM], "grammar.weights")
def _(folder: Path, data: bytes) -> str | None:
    return _grammar(folder / "x@V.orm", data)


@reader("orm.gz", "gz", lambda: [gzip.compress(_ORM)])
def _(folder: Path, data: bytes) -> str | None:
    return _grammar(folder / "x@V.orm.gz", data)


# The form of the published models: KIND_label_label weight.
_ORM = b"BTW_nsubj_obj 1.25\nBTW_nsubj_# 0.5\nHI_nsubj_#_obj 2.0\nBTW_obj_# -3e-1\n"


@reader("weights", "text", lambda: [_WEIGHTS], "transforms.grammar")
def _(folder: Path, data: bytes) -> str | None:
    from derivlang.transforms.grammar import read_table

    path = folder / "x.tsv"
    path.write_bytes(data)
    read_table(path)
    return None


@reader(
    "counts of orders",
    "text",
    lambda: [b"# derivlang counts 1\n# language: X\n# rows: 2\nside\tobj\t12\t3\npair\troot\tobj\troot\t4\n"],
    "grammar.counts",
)
def _(folder: Path, data: bytes) -> str | None:
    from derivlang.grammar.counts import read, text_of

    path = folder / "x.tsv"
    path.write_bytes(data)
    counts = read(path)
    path.write_text(text_of(counts), "utf-8")
    return None if read(path).fingerprint == counts.fingerprint else "counts are not read as they were written"


@reader(
    "word counts",
    "text",
    lambda: [b"word\tcount\nthe\t129\n\\\\\t3\n", b"source\tderived\tcount\na\tb\t2\n"],
    "formats.dictionary",
)
def _(folder: Path, data: bytes) -> str | None:
    from derivlang.formats.dictionary import read_counts

    path = folder / "x.tsv"
    path.write_bytes(data)
    read_counts(path)
    return None


_SUFFIXES = b"relation\tsingular\tplural\nnsubj\tkar\tkon\nobl:tmod\tna\n"


@reader("suffixes", "text", lambda: [_SUFFIXES], "transforms.suffixes")
def _(folder: Path, data: bytes) -> str | None:
    from derivlang.transforms.suffixes import read_suffixes

    path = folder / "x.tsv"
    path.write_bytes(data)
    read_suffixes.__wrapped__(path)
    return None


@reader("pcfg", "text", lambda: [b"S -> A 'b' [0.5] | A [0.5]\n# switch 2\nA -> A \"c\" [0.3] | 'd' [0.7]\n"],
        "formats.pcfg_file", "sources.generated.pcfg")  # fmt: skip
def _(folder: Path, data: bytes) -> str | None:
    (folder / "a.pcfg").write_bytes(data)
    found = find(SourceRequest(f'source:pcfg="{folder / "a.pcfg"}":n=3'))
    for part in found.parts:
        assert all(len(row) for rows in tables(found, part) for row in rows.table["tokens"])
    return None


@reader("word list", "text", lambda: [b"the\nof\nand\n"], "formats.dictionary", "transforms.dialect")
def _(folder: Path, data: bytes) -> str | None:
    from derivlang.core.arrow import string_array

    (folder / "a.txt").write_bytes(data)
    pipeline = Pipeline.parse(f"dialect:nonce=0.5:words={folder / 'a.txt'}")
    pipeline.save(pipeline.fit(string_array(["the", "cat"]), np.array([2, 1])))
    return None


_DIALECT = b"""# derivlang lexicon: dialect:phon=0.5:suffix=0.5:nonce=0.5
kind\tword\timage
suffix\ting\ted
suffix\ted\ted
word\tboat\t
"""


@reader("lexicon of a dialect", "text", lambda: [_DIALECT], "transforms.fitting")
def _(folder: Path, data: bytes) -> str | None:
    from derivlang.core.arrow import string_array
    from derivlang.transforms.fitting import read_lexicon

    (folder / "lexicon.tsv").write_bytes(data)
    pipeline = Pipeline.parse("dialect:phon=0.5:suffix=0.5:nonce=0.5")
    lexicon = pipeline.fit(saved=read_lexicon(folder / "lexicon.tsv"))
    lexicon.apply(string_array(["walking", "the", "Boats", "<unk>", "1"]))
    return None


_WEIGHTS = b"relation\tside\tdistance\n# a comment\nnsubj\t0.5\t-1e2\nobj\t-.5\t3\n*\t0\t0\n"


def _grammar(path: Path, data: bytes) -> str | None:
    from derivlang.grammar.grammar import load_grammar

    path.write_bytes(data)
    load_grammar(path)
    return None


def _dictionary(name: str) -> Callable[[Path, bytes], str | None]:
    def read(folder: Path, data: bytes) -> str | None:
        from derivlang.formats.dictionary import read_dictionary

        (folder / name).write_bytes(data)
        read_dictionary(folder / name)
        return None

    return read


_MUSE = b"cat chat\ncat minou\ndog chien\nthe le\nthe la\nhouse maison\n"
reader("dictionary.txt", "text", lambda: [_MUSE], "formats.dictionary")(_dictionary("a.txt"))
reader("dictionary.txt.gz", "gz", lambda: [gzip.compress(_MUSE)])(_dictionary("a.txt.gz"))
reader("dictionary.tsv", "text", lambda: [b"source\ttarget\n" + _MUSE.replace(b" ", b"\t")])(_dictionary("a.tsv"))
reader("dictionary.json", "json", lambda: [b'{"cat": ["chat", "minou"], "dog": ["chien"], "the": "le"}'])(
    _dictionary("a.json")
)


@reader("lex", "text", lambda: [_MUSE], "transforms.lex")
def _(folder: Path, data: bytes) -> str | None:
    from derivlang import derive

    (folder / "a.txt").write_bytes(data)
    derive(["the", "cat", "sees", "the", "dog", "."], f"lex:{folder / 'a.txt'}")
    return None


@reader("pharaoh", "numbers", lambda: [b"0-0 1-1 2p3\n\n0-1 1-0\n3-2 2-3 0-0 1p1\n"], "align.links", "commands.align")
def _(folder: Path, data: bytes) -> str | None:
    from derivlang.align.links import check_range, parse_lines
    from derivlang.formats.opening import open_lines

    (folder / "a.pharaoh").write_bytes(data)
    links = parse_lines([line for _, line in open_lines(folder / "a.pharaoh")], "a.pharaoh")
    check_range(links, None, None)
    return None


@reader("bitext", "text", lambda: [b"the cat sleeps .\nthe dog sees the cat .\n\nyes .\n" * 2], "align.bitext")
def _(folder: Path, data: bytes) -> str | None:
    from derivlang.align.align import AlignOptions, align
    from derivlang.formats.opening import open_lines

    (folder / "a.txt").write_bytes(data)
    side = [line for _, line in open_lines(folder / "a.txt")]
    align(side, side, AlignOptions("ibm2", iterations=1))
    return None


@cache
def tokenizer_folder() -> Path:
    from derivlang.lexical.settings import TokenizerOptions
    from derivlang.lexical.train import train
    from derivlang.lexical.twin import make_twin

    folder = Path(mkdtemp(prefix="derivlang-tests-"))
    train(SourceRequest("demo"), folder / "tok", TokenizerOptions(vocab_size=200, min_frequency=1))
    make_twin(folder / "tok", "trans", folder / "twin")
    return folder


def _tokenizer(which: str, name: str) -> Callable[[Path, bytes], str | None]:
    def read(folder: Path, data: bytes) -> str | None:
        from derivlang.lexical.tokenizer import Tokenizer
        from derivlang.lexical.twin import Twin

        shutil.copytree(tokenizer_folder(), folder / "t")
        (folder / "t" / which / name).write_bytes(data)
        if name == "derivlang-tokenizer.json":
            seal(folder / "t" / which / name)
        (Twin if which == "twin" else Tokenizer).load(folder / "t" / which)
        return None

    return read


def _tokenizer_seed(which: str, name: str) -> Callable[[], list[bytes]]:
    return lambda: [(tokenizer_folder() / which / name).read_bytes()]


reader("tokenizer.json", "json", _tokenizer_seed("tok", "tokenizer.json"), "lexical.tokenizer", "lexical.bpe")(
    _tokenizer("tok", "tokenizer.json")
)
reader("tokenizer recipe", "json", _tokenizer_seed("tok", "derivlang-tokenizer.json"))(
    _tokenizer("tok", "derivlang-tokenizer.json")
)
reader("twin recipe", "json", _tokenizer_seed("twin", "derivlang-tokenizer.json"), "lexical.twin")(
    _tokenizer("twin", "derivlang-tokenizer.json")
)


def _foreign(name: str) -> Callable[[Path, bytes], str | None]:
    def read(folder: Path, data: bytes) -> str | None:
        import pyarrow as pa

        from derivlang.lexical.foreign import ForeignTokenizer
        from derivlang.training.begun_from import config_of, load_model
        from tests.checkpoints import checkpoint

        shutil.copytree(checkpoint(), folder / "c")
        (folder / "c" / name).write_bytes(data)
        if name.startswith("tokenizer"):
            found = ForeignTokenizer.load(folder / "c")
            found.encode(pa.array(["low", "er"]), np.arange(2, dtype=np.int32), np.array([0, 2]))
        else:
            config_of(folder / "c", "c")
            load_model(folder / "c", causal=False)
        return None

    return read


def _foreign_seed(name: str) -> Callable[[], list[bytes]]:
    def seeds() -> list[bytes]:
        from tests.checkpoints import checkpoint

        return [(checkpoint() / name).read_bytes()]

    return seeds


for _name, _kind, _module in (
    ("tokenizer.json", "json", "lexical.foreign"),
    ("tokenizer_config.json", "json", "lexical.foreign"),
    ("config.json", "json", "training.begun_from"),
    ("model.safetensors", "safetensors", "training.begun_from"),
):
    reader(f"foreign {_name}", _kind, _foreign_seed(_name), _module, "lexical.pretrained")(_foreign(_name))


# ---- specs, settings, models, runs


@reader("spec", "text", lambda: [b"trans:greek,perm:window=3:seed=2", b"lex:a.txt:rate=50,inv:final=move"])
def _(folder: Path, data: bytes) -> str | None:
    from derivlang import derive

    (folder / "a.txt").write_bytes(_MUSE)
    derive(["Ann", "runs", "."], data.decode("utf-8", "surrogateescape").replace("a.txt", str(folder / "a.txt")))
    return None


# Every table and every kind of value of the shipped studies, with few cells: reading checks the options of each.
_STUDY = b"""# Two grids
[study]
text = ["demo", "wikitext2"]
model = "tiny"
steps = 3
threads = 1
[cell]
tie = true
[evaluate]
task = "pos,ner"
epochs = "1,2" # of pos and of ner
lr = 2e-3
[report]
baseline = { objective = "mlm" }
x = "t"
lines = "objective"
[[grid]]
[grid.factors]
t = ["trans", "trans,inv"]
objective = ["mlm"]
start = ["cold"]
[[grid]]
name = "syn"
[grid.factors]
t = ["trans,inv"]
objective = ["xlm-align:pairs=2:labels=gold"]
seed = [1, 2]
[grid.cell]
init = "{t}.mlm.cold"
learning-rate = 1e-3
"""
_SCALED = b"""[study]
scales = ["tiny", "paper"]
[cell]
t = "trans"
[scale.tiny.cell]
dict-coverage = 50
[scale.paper.study]
text = ["demo"]
[[grid]]
scales = ["tiny"]
[grid.scale.tiny]
seeds = 1
cell = { steps = 3 }
[grid.factors]
objective = ["mlm", "align-mlm"]
seed = [1, 2]
[[grid]]
[grid.factors]
objective = ["mlm"]
[report]
published = [{ objective = "mlm", task = "xnli", source = "A (2020), Table 1", values = { zs = 70 } }]
"""


@reader("study.toml", "text", lambda: [_STUDY], "studies.file")
def _(folder: Path, data: bytes) -> str | None:
    from derivlang.studies.file import read

    (folder / "s.toml").write_bytes(data)
    read(str(folder / "s.toml"))
    return None


@reader("scales of study.toml", "text", lambda: [_SCALED], "studies.tables")
def _(folder: Path, data: bytes) -> str | None:
    from derivlang.studies.file import read

    (folder / "s.toml").write_bytes(data)
    for scale in ("tiny", "paper"):
        read(str(folder / "s.toml"), scale=scale)
    return None


@reader("model.toml", "text", files("../../training/models/tiny.toml"), "training.config")
def _(folder: Path, data: bytes) -> str | None:
    from derivlang.training.config import ModelConfig

    (folder / "m.toml").write_bytes(data)
    ModelConfig.read(str(folder / "m.toml"))
    return None


@cache
def _parser_folder() -> Path:
    """A small parser of three sentences."""
    from derivlang.parsing.training.fit import fit
    from tests.test_parsing_training import TINY, bank, parser

    folder = Path(mkdtemp(prefix="derivlang-tests-")) / "parser"
    parser(fit(bank(), replace(TINY, epochs=1)), folder)
    return folder


def _parser(name: str) -> Callable[[Path, bytes], str | None]:
    def read(folder: Path, data: bytes) -> str | None:
        from derivlang.parsing.model import load_model

        shutil.copytree(_parser_folder(), folder / "p")
        (folder / "p" / name).write_bytes(data)
        if name == "model.json":
            seal(folder / "p" / name)
        else:
            forge_parser(folder / "p")
        load_model(folder / "p")
        return None

    return read


def _parser_seed(name: str) -> Callable[[], list[bytes]]:
    return lambda: [(_parser_folder() / name).read_bytes()]


reader("parser card", "json", _parser_seed("model.json"), "parsing.model")(_parser("model.json"))
reader("parser weights", "npz", _parser_seed("model.npz"))(_parser("model.npz"))


def _trained_card() -> bytes:
    card = json.loads((_parser_folder() / "model.json").read_text("utf-8"))
    files = {"a.conllu": "0" * 64}
    more = {"licence": "", "threads": 1, "trained_on": files, "scored_on": files, "scores": {"a.conllu": {}}}
    return json.dumps({**card, **more}).encode()


@reader("parser card, compared", "json", lambda: [_trained_card()], "training.parser")
def _(folder: Path, data: bytes) -> str | None:
    from derivlang.training.parser import PARSER_FOLDERS, recipe_of

    shutil.copytree(_parser_folder(), folder / "p")
    (folder / "p" / "model.json").write_bytes(data)
    seal(folder / "p" / "model.json")
    PARSER_FOLDERS.found(folder / "p", recipe_of(json.loads(_trained_card())))
    return None


@cache
def _grammar_folder() -> Path:
    """A grammar of three treebank sentences, many times, with its recipe."""
    from tests.commands import TREES

    folder = Path(mkdtemp(prefix="derivlang-tests-"))
    (folder / "a.conllu").write_text(TREES * 25, "utf-8")
    _fit(folder)
    return folder


def _fit(folder: Path) -> None:
    from derivlang.commands.grammar_file import fit_file
    from derivlang.grammar.settings import GrammarFitOptions

    fit_file([folder / "a.conllu"], folder / "g.tsv", GrammarFitOptions(classes="V"), lambda message: None)


@reader("recipe of a grammar, compared", "json", lambda: [(_grammar_folder() / "g.tsv.recipe.json").read_bytes()],
        "commands.grammar_file")  # fmt: skip
def _(folder: Path, data: bytes) -> str | None:
    shutil.copytree(_grammar_folder(), folder / "g")
    (folder / "g" / "g.tsv.recipe.json").write_bytes(data)
    seal(folder / "g" / "g.tsv.recipe.json")
    _fit(folder / "g")
    return None


def _collected(name: str) -> Callable[[Path, bytes], str | None]:
    """A run with one file of its evaluation, whose table is collected and compared."""

    def read(folder: Path, data: bytes) -> str | None:
        from derivlang.evaluation.collect import verify_run

        shutil.copytree(_evaluated(), folder / "run")
        (folder / "run" / name).write_bytes(data)
        if name.endswith(".json"):
            seal(folder / "run" / name)
        else:
            forge_scores(folder / "run", Path(name).name)
        verify_run(folder / "run")
        _compare(folder / "run")
        return None

    return read


def _compare(place: Path) -> None:
    """Collect the scores of a folder or a file, and compare them."""
    from derivlang.evaluation.collect import scores
    from derivlang.evaluation.report.compare import compare

    compare(scores(place))


@cache
def _evaluated() -> Path:
    """The files of an evaluated run; no model made them."""
    from tests.runs import run

    return run(Path(mkdtemp(prefix="derivlang-tests-")) / "run")


# What the seed of run.json leaves out.
_MORE = {
    "run.json": b"""{"status": "done", "factors": {"size": 1}, "streams": {"rows": {"rows_per_step": 16}, "pairs":
{"percent": 25.1, "cut_sentences": 3, "short_pairs": 1, "sentences": 9}}, "weights": "269fd9ad", "settings":
{"mask": 0.3}, "environments": [{"torch": "2", "threads": 1}], "init": {"run": "r", "weights": "w"}, "doses":
{"tokens": 9, "rows_tokens": 9, "rows_epochs": 0.5, "masked_percent": 28.4}}""",
}


def _run_seed(name: str) -> Callable[[], list[bytes]]:
    def seeds() -> list[bytes]:
        seed = (_evaluated() / name).read_bytes()
        more = [json.dumps(json.loads(seed) | json.loads(_MORE[name])).encode()] if name in _MORE else []
        return [seed, *more]

    return seeds


def _table_seed() -> list[bytes]:
    from derivlang.evaluation.collect import scores
    from derivlang.evaluation.table import write_scores

    path = Path(mkdtemp(prefix="derivlang-tests-")) / "scores.parquet"
    write_scores(scores(_evaluated()), path)
    return [path.read_bytes()]


@reader("scores.parquet", "parquet", _table_seed, "evaluation.table")
def _(folder: Path, data: bytes) -> str | None:
    (folder / "scores.parquet").write_bytes(data)
    _compare(folder / "scores.parquet")
    return None


def _study_seed() -> list[bytes]:
    cells = [{"run": f"runs/{name}", "factors": {"size": size, "seed": 1}} for name, size in (("run", 1), ("b", 2))]
    report = {"baseline": {"size": 1}, "x": "size"}
    record = {"format": 1, "study": "s", "factors": {"size": [1, 2], "seed": [1]}, "report": report, "cells": cells}
    return [json.dumps(sealed(record)).encode()]


@reader("study.json", "json", _study_seed, "evaluation.plan")
def _(folder: Path, data: bytes) -> str | None:
    shutil.copytree(_evaluated(), folder / "runs" / "run")
    (folder / "study.json").write_bytes(data)
    seal(folder / "study.json")
    _compare(folder)
    return None


@cache
def _study_folder() -> tuple[StudyFile, list[PlannedCommand], Path]:
    """A study of two cells, one of which begins from the other; its commands; and its folder, with finished runs."""
    from derivlang.studies.file import read
    from derivlang.studies.plan import plan
    from derivlang.studies.records import mark_done, write_study
    from derivlang.studies.settings import Place

    folder = Path(mkdtemp(prefix="derivlang-tests-"))
    (folder / "d.txt").write_bytes(_MUSE)
    text = """[study]\ntext = ["demo"]\nsteps = 3\nmodel = "tiny"\n[cell]\nt = "inv"\nvocab-size = 400
dictionary = "d.txt"\n[evaluate]\nmeasure = "alignment"\n[[grid]]\n[grid.factors]\nobjective = ["mlm"]\nseed = [1]
[[grid]]\n[grid.factors]\nobjective = ["align-mlm"]\nseed = [1]\n[grid.cell]\ninit = "mlm.1"\n"""
    (folder / "s.toml").write_text(text, "utf-8")
    study = read(str(folder / "s.toml"))
    place = Place(folder / "out")
    (place.out / "text").mkdir(parents=True)
    steps = plan(study, place)
    for step in steps:
        (place.out / step.name).mkdir(parents=True, exist_ok=True)
        if step.cell is not None and step.arguments[0] == "pretrain":
            run = place.out / "runs" / step.cell.name
            run.mkdir(parents=True)
            init = {"run": "runs/mlm.1", "weights": "w"} if step.cell.needs else None
            facts = {"status": "done", "fingerprint": "f", "weights": "w", "init": init}
            (run / "run.json").write_text(json.dumps(facts), "utf-8")
        if step.cell is not None:
            mark_done(step, place)
    write_study(study, place)
    return study, steps, place.out


def _records(name: str) -> Callable[[Path, bytes], str | None]:
    def read(folder: Path, data: bytes) -> str | None:
        from derivlang.studies.records import check_fits, check_shared, is_done, verify_study
        from derivlang.studies.settings import Place

        study, steps, out = _study_folder()
        shutil.copytree(out, folder / "out")
        (folder / "out" / name).write_bytes(data)
        seal(folder / "out" / name)
        place = Place(folder / "out")
        check_shared(study, place)
        for step in steps:
            check_fits(step, place)
            if step.cell is not None:
                is_done(step, place)
        verify_study(folder / "out")
        return None

    return read


for _name in (
    "study.json",
    "runs/mlm.1/run.json",
    "runs/align-mlm.1/run.json",
    "runs/align-mlm.1/pretrained.json",
    "runs/align-mlm.1/evaluated.json",
):
    reader(
        f"{_name} of a study",
        "json",
        lambda name=_name: [(_study_folder()[2] / name).read_bytes()],
        "studies.records",
    )(_records(_name))
reader("run.json", "json", _run_seed("run.json"), "evaluation.collect")(_collected("run.json"))
reader("evaluation.json", "json", _run_seed("evaluation.json"), "evaluation.results", "evaluation.collect")(
    _collected("evaluation.json")
)
reader("scores of a fine-tuning", "parquet", _run_seed("evaluation/pos.sup.1.parquet"), "evaluation.scores")(
    _collected("evaluation/pos.sup.1.parquet")
)


# ---- what training reads back: a run of six steps of a model of width 16


@cache
def _trained() -> Path:
    from tests.training import trained

    folder = Path(mkdtemp(prefix="derivlang-tests-"))
    trained(folder / "run", save_every=5)
    return folder / "run"


@cache
def _halted() -> Path:
    """The same run as it was after five of its six steps."""
    folder = Path(mkdtemp(prefix="derivlang-tests-")) / "run"
    shutil.copytree(_trained(), folder)
    shutil.rmtree(folder / "model")
    shutil.rmtree(sorted((folder / "checkpoints").iterdir())[-1])
    record = json.loads((folder / "run.json").read_text("utf-8"))
    record |= {"status": "stopped", "result": None}
    (folder / "run.json").write_text(json.dumps(record), "utf-8")
    forge_run(folder)
    return folder


@cache
def _halted_model() -> tuple[Any, dict[str, Any]]:
    """The model of the checkpoint, and a copy of its weights: each run changes them."""
    from derivlang.training.checkpoint import load_model

    model = load_model(_halted() / _checkpoint() / "model")
    return model, deepcopy(model.state_dict())


def _checkpoint() -> Path:
    (found,) = (_halted() / "checkpoints").iterdir()
    return found.relative_to(_halted())


def _resumed(name: Callable[[], str]) -> Callable[[Path, bytes], str | None]:
    """A run makes its last step with a damaged file of its own."""

    def read(folder: Path, data: bytes) -> str | None:
        from tests.training import trained

        shutil.copytree(_halted(), folder / "run")
        (folder / "run" / name()).write_bytes(data)
        _forge(folder / "run", name())
        # The model takes most of the time: one input in 200 of the other files reads them.
        if crc32(data) % 200 == 0 or "model" in name():
            trained(folder / "run", resume=True, save_every=5)
            return None
        model, weights = _halted_model()
        model.load_state_dict(weights)
        with patch("derivlang.training.checkpoint.load_model", lambda _: model):
            trained(folder / "run", resume=True, save_every=5)
        return None

    return read


def _forge(run: Path, name: str) -> None:
    """Give the records of a run the hashes of a damaged file, or of themselves, if one of them was damaged."""
    if name.endswith(("run.json", "state.json")):
        seal(run / name)
    else:
        forge_run(run)


def _trained_seed(name: Callable[[], str]) -> Callable[[], list[bytes]]:
    return lambda: [(_halted() / name()).read_bytes()]


for _what, _kind, _name, _modules in (
    ("run.json, resumed", "json", lambda: "run.json", ("training.run_folder",)),
    ("checkpoint state", "json", lambda: f"{_checkpoint()}/state.json", ("training.checkpoint",)),
    ("checkpoint optimiser", "bytes", lambda: f"{_checkpoint()}/training.pt", ()),
    ("checkpoint weights", "safetensors", lambda: f"{_checkpoint()}/model/model.safetensors", ()),
    ("checkpoint config", "json", lambda: f"{_checkpoint()}/model/config.json", ()),
):
    reader(_what, _kind, _trained_seed(_name), *_modules)(_resumed(_name))


def _loaded(name: str) -> Callable[[Path, bytes], str | None]:
    def read(folder: Path, data: bytes) -> str | None:
        from derivlang.evaluation.trained import PretrainedRun

        shutil.copytree(_trained(), folder / "run")
        (folder / "run" / name).write_bytes(data)
        _forge(folder / "run", name)
        PretrainedRun.load(folder / "run")
        return None

    return read


for _path in ("run.json", "model/config.json"):
    reader(f"{_path}, evaluated", "json", lambda name=_path: [(_trained() / name).read_bytes()], "evaluation.trained")(
        _loaded(_path)
    )


@reader(
    "evaluation.json, evaluated again",
    "json",
    lambda: [_measured(_trained())],
    "evaluation.evaluate",
)
def _(folder: Path, data: bytes) -> str | None:
    shutil.copytree(_trained(), folder / "run")
    (folder / "run" / "evaluation.json").write_bytes(data)
    seal(folder / "run" / "evaluation.json")
    _measured(folder / "run")
    return None


def _measured(run: Path) -> bytes:
    """Measure a run, and return its evaluation.json."""
    from derivlang.evaluation.evaluate import EvaluateOptions
    from tests.evaluations import evaluate

    evaluate(run, EvaluateOptions(measures=("alignment",), pairs=20, sentences=20, threads=1))
    return (run / "evaluation.json").read_bytes()


def _data_folder() -> Path:
    from tests.training import data_folder, pair

    return data_folder() / next(name for name in pair().used if name.startswith("dictionary-"))


@reader("recipe of a folder of data", "json", lambda: [(_data_folder() / "made-of.json").read_bytes()], "store.made_of")
def _(folder: Path, data: bytes) -> str | None:
    from derivlang.store.made_of import RECIPE, checked

    place = Path(shutil.copytree(_data_folder(), folder / _data_folder().name))
    (place / RECIPE).write_bytes(data)
    checked(place)
    return None


@reader("runs beside a folder of data", "json", lambda: [(_trained() / "run.json").read_bytes()], "cli.ls")
def _(folder: Path, data: bytes) -> str | None:
    from derivlang.cli.ls import _show_data

    shutil.copytree(_data_folder(), folder / "data" / _data_folder().name)
    (folder / "run.json").write_bytes(data)
    _show_data(folder / "data", unused=True)
    return None


def _pairs_to_train(folder: Path) -> None:
    from derivlang.training.streams.bitext import FilePairs, read_pairs
    from tests.training import pair

    found = FilePairs(read_pairs(folder), pair().languages, 30)
    every = np.arange(len(found.sizes))
    found.side(every, 1)
    found.links(every)


def _pairs_of_words() -> list[bytes]:
    words = pa.array([["the", "cat", "sleeps"], ["yes"]] * 3)
    links = pa.array([[[0, 2], [1, 1]], [[0, 0]]] * 3, pa.list_(pa.list_(pa.int32(), 2)))
    return [_parquet(pa.table({"source": words, "tokens": words, "links": links}))]


@reader("training pairs", "text", lambda: [b"the cat sleeps .\n\nyes .\n" * 2], "training.streams.bitext")
def _(folder: Path, data: bytes) -> str | None:
    (folder / "a.source").write_bytes(data)
    (folder / "a.derived").write_bytes(b"sleeps . cat\n\nyes\n" * 2)
    (folder / "a.pharaoh").write_bytes(b"0-0\n\n0-0\n" * 2)
    _pairs_to_train(folder / "a")
    return None


@reader("training pairs.parquet", "parquet", _pairs_of_words)
def _(folder: Path, data: bytes) -> str | None:
    (folder / "a.parquet").write_bytes(data)
    _pairs_to_train(folder / "a.parquet")
    return None


@reader("words of a tokenizer", "parquet", lambda: [(tokenizer_folder() / "tok" / "words.parquet").read_bytes()],
        "lexical.train")  # fmt: skip
def _(folder: Path, data: bytes) -> str | None:
    from derivlang.lexical.twin import make_twin

    shutil.copytree(tokenizer_folder() / "tok", folder / "tok")
    (folder / "tok" / "words.parquet").write_bytes(data)
    make_twin(folder / "tok", "trans:overlap=25", folder / "twin")
    return None


@cache
def _cell() -> FinetuneCell:
    from derivlang.evaluation.cell import FinetuneCell
    from derivlang.evaluation.tasks.registry import task_of
    from derivlang.evaluation.trained import PretrainedRun

    sets: Any = SimpleNamespace(key="data", words="space")
    return FinetuneCell(PretrainedRun.load(_trained()), task_of("pos"), "zs", 1, sets)


def _cell_seed() -> list[bytes]:
    from derivlang.evaluation.scores import Score, write_part

    made = _cell()
    score = Score("accuracy", np.array([[3, 4], [1, 2]]), regime="zs", split="test", ft_seed=1)
    write_part(made.path, {"key": made.key}, "pos", made.task.columns, [score])
    data = made.path.read_bytes()
    shutil.rmtree(made.path.parent)
    return [data]


@reader("cell", "parquet", _cell_seed, "evaluation.cell", "evaluation.predictions")
def _(folder: Path, data: bytes) -> str | None:
    shutil.copytree(_trained(), folder / "run")
    made = replace(_cell(), trained=replace(_cell().trained, folder=folder / "run"))
    made.path.parent.mkdir()
    made.path.write_bytes(data)
    made.has_predictions()
    return None


def _command(*arguments: str) -> str | None:
    """A command in this process, whose messages are those of a DerivlangError."""
    from click.testing import CliRunner

    from derivlang.cli.main import main

    found = CliRunner().invoke(main, arguments)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return None


# ---- what commands write beside their output, and read again


@reader(
    "recipe of an earlier file", "json",
    lambda: [b'{"format": 1, "noise": 2.5, "files": {"a.tsv": "00", "a.heldout.tsv": "11"}}'],
    "lexical.dictionary", "store.artifact",
)  # fmt: skip
def _(folder: Path, data: bytes) -> str | None:
    from derivlang.core.errors import StoreError
    from derivlang.lexical.dictionary import files_of_recipe
    from derivlang.store.artifact import check_replaceable

    (folder / "recipe.json").write_bytes(data)
    with suppress(StoreError):
        wanted = {"noise": 3, "files": {"a.tsv": "00"}}
        check_replaceable([folder / "recipe.json"], folder / "recipe.json", wanted, noun="dictionary")
    found = files_of_recipe(folder / "recipe.json")
    return None if all(isinstance(name, str) for name in found) else "names that are no text"


@reader("note of a folder", "json", lambda: [b'{"files": ["a", "b/c"], "record": "r"}'], "store.folders")
def _(folder: Path, data: bytes) -> str | None:
    """A stranger's note, too, removes only files of the folder."""
    from derivlang.store.folders import NOTE, replace_folder
    from derivlang.store.storage import Store

    store = Store(folder)
    for name in ("out/a", "out/b/c", "a", "b/c"):
        store.put(name, b"x")
    store.put(f"out/{NOTE}", data)
    try:
        replace_folder(folder / "out", lambda fresh: None, warn=lambda message: None)
    finally:
        lost = [name for name in ("a", "b/c") if store.get(name) is None]
        store.remove("out/", "a", "b/c")
    return f"removed: {lost}" if lost else None
