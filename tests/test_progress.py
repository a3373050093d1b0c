"""Progress: every stage moves in small steps, by bytes, words, rows or steps, and its total is what is done."""

from __future__ import annotations

import gzip
import re
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings

from derivlang.align.align import AlignOptions as AlignOptions
from derivlang.align.align import align
from derivlang.cli.options import Bar
from derivlang.core.errors import DataError, UsageError
from derivlang.display.bar import ticking
from derivlang.engine.make import make
from derivlang.engine.options import MakeOptions
from derivlang.formats.opening import open_bytes, open_lines
from derivlang.formats.progress import Reader, Unit, bytes_read, progress_to, rows_done, shown_by, stage, steps_done
from derivlang.grammar.families import Families
from derivlang.grammar.fit import FitSettings, fit
from derivlang.lexical.bpe import train_bpe
from derivlang.lexical.settings import TokenizerOptions
from derivlang.lexical.train import train as train_tokenizer
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.store.export import undo
from derivlang.store.verify import verify
from tests import commands


class Seen(Reader):
    """The stages of a run: their units and totals, and each advance of them."""

    def __init__(self) -> None:
        self.totals: dict[str, tuple[Unit | None, int | None]] = {}
        self.advances: dict[str, list[int]] = defaultdict(list)

    @contextmanager
    def stage(self, what: str, unit: Unit | None, total: int | None) -> Iterator[None]:
        self.totals[what] = unit, total
        with progress_to(self.advances[what].append, unit):
            yield


@pytest.fixture
def seen() -> Iterator[Seen]:
    """What the test reports."""
    found = Seen()
    with shown_by(found):
        yield found


def big_text(folder: Path, n_bytes: int = 12_000_000) -> Path:
    rng = np.random.default_rng(1)
    words = np.array([f"w{i}" for i in range(5000)])
    line = " ".join(words[rng.integers(0, 5000, 50_000)].tolist()[:40])
    lines = [" ".join(words[rng.integers(0, 5000, 40)].tolist()) for _ in range(n_bytes // len(line))]
    return commands.written(folder / "big.train.tokens", "\n".join(lines) + "\n")


def bitext(n_pairs: int) -> tuple[list[str], list[str]]:
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 300, rng.integers(3, 30)).tolist() for _ in range(n_pairs)]
    return [" ".join(f"s{i}" for i in row) for row in rows], [" ".join(f"t{i // 2}" for i in row) for row in rows]


def test_one_shard_moves_by_the_bytes_that_are_read(tmp_path: Path, seen: Seen) -> None:
    source = big_text(tmp_path)
    make(Pipeline.parse("trans,inv"), SourceRequest(str(source)), MakeOptions(tmp_path / "out"))
    size = source.stat().st_size
    for what in ("hashing", "making"):
        assert seen.totals[what] == ("bytes", size)
        assert sum(seen.advances[what]) == size
        assert max(seen.advances[what]) <= 1 << 20, "a stage stands still while this is read"


@pytest.mark.parametrize("workers", [1, 2])
def test_every_byte_counts_once_with_any_workers(tmp_path: Path, workers: int, seen: Seen) -> None:
    source = big_text(tmp_path, 3_000_000)
    options = MakeOptions(tmp_path / "out", shard_tokens=200_000, workers=workers)
    make(Pipeline.parse("inv"), SourceRequest(str(source)), options)
    unit, total = seen.totals["making"]
    assert unit == "bytes"
    assert sum(seen.advances["making"]) == total == source.stat().st_size


def test_parsing_moves_by_words(tmp_path: Path, seen: Seen) -> None:
    source = commands.wiki(tmp_path, "\n".join(["The cat sleeps ."] * 600) + "\n")
    make(
        Pipeline.parse("syn:fr"), SourceRequest(str(source)), MakeOptions(tmp_path / "out", parses=tmp_path / "parses")
    )
    assert seen.totals["parsing"] == ("words", None)
    assert sum(seen.advances["parsing"]) == 2400
    assert len(seen.advances["parsing"]) > 1


def test_verify_and_undo_move_by_bytes(tmp_path: Path) -> None:
    make(Pipeline.parse("trans,inv"), SourceRequest(str(big_text(tmp_path, 24_000_000))), MakeOptions(tmp_path / "out"))
    (shard,) = (tmp_path / "out" / "data").iterdir()
    for run in (lambda: verify(tmp_path / "out"), lambda: undo(tmp_path / "out", None, tmp_path / "undone")):
        steps: list[int] = []
        with progress_to(steps.append, "bytes"):
            run()
        assert len(steps) > 2
        assert 0.9 * shard.stat().st_size < sum(steps) <= shard.stat().st_size


def test_aligning_moves_by_sentence_pairs_from_the_first_table_to_the_last_link(seen: Seen) -> None:
    source, target = bitext(4000)
    align([*source, "an empty target"], [*target, ""], AlignOptions(iterations=1, symmetrise="grow-diag-final-and"))
    assert list(seen.totals.items()) == [
        ("numbering the words of the source", ("rows", 4001)),
        ("numbering the words of the target", ("rows", 4001)),
        ("finding word pairs", ("rows", 4000)),
        ("sorting word pairs", (None, None)),
        ("numbering word pairs", ("rows", 4000)),
        ("comparing spellings", (None, None)),
        ("aligning", ("rows", 5 * 4000)),
        ("choosing links", ("rows", 2 * 4000)),
        ("joining both directions", ("rows", seen.totals["joining both directions"][1])),
    ]
    for what, (unit, total) in seen.totals.items():
        assert sum(seen.advances[what]) == (total or 0)
        assert unit is None or what.startswith("numbering the") or len(seen.advances[what]) > 2, what


def test_eflomal_moves_by_sentences_around_its_one_call(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    class Aligner:
        def __init__(self, n_iterations: tuple[int, ...] | None) -> None:
            self.aligned = n_iterations[0] if n_iterations else None  # sentence pairs

        def align(self, source: list[str], target: list[str], **files: str) -> None:
            for name in files.values():
                Path(name).write_text("0-0\n" * (self.aligned or len(source)))

    fake = ModuleType("eflomal")
    fake.Aligner = Aligner  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "eflomal", fake)
    align(*bitext(100), AlignOptions("eflomal"))
    assert seen.totals["aligning with eflomal"] == (None, None)
    for what, total in (("writing numbers for words", 200), ("reading links", 2 * 100 * len("0-0\n"))):
        assert seen.totals[what][1] == sum(seen.advances[what]) == total
    with pytest.raises(DataError, match="eflomal aligned 50 of 100 sentence pairs"):
        align(*bitext(100), AlignOptions("eflomal", iterations=50))


def test_training_a_tokenizer_moves_by_words_that_a_librarys_threads_read(tmp_path: Path, seen: Seen) -> None:
    source = big_text(tmp_path, 1_000_000)
    recipe = train_tokenizer(SourceRequest(str(source)), tmp_path / "tokenizer", TokenizerOptions(vocab_size=1000))
    assert [what for what, (unit, _) in seen.totals.items() if unit == "bytes"] == [
        "looking at the source",
        "hashing",
        "counting words",
    ]
    assert sum(seen.advances["counting words"]) == source.stat().st_size
    assert seen.totals["training the tokenizer"] == ("words", recipe["words"]["tokens"])
    assert sum(seen.advances["training the tokenizer"]) == recipe["words"]["tokens"]
    assert len(seen.advances["training the tokenizer"]) > 2
    assert seen.totals["merging sub-words"] == (None, None)


def test_a_tokenizer_that_cannot_be_trained_leaves_no_stage_open(seen: Seen) -> None:
    outer: list[int] = []
    with progress_to(outer.append, "rows"):
        with pytest.raises(UsageError, match="more than these words allow"):
            train_bpe(pa.array(["ab", "ac"]), np.array([3, 4]), 1000)
        rows_done(2)
    assert outer == [2]


def test_fitting_a_grammar_moves_by_steps(seen: Seen) -> None:
    families = Families.of([["DET&det", "@NOUN&@"], ["@NOUN&@", "ADJ&amod"], ["DET&det", "ADJ&amod", "@NOUN&@"]])
    fit(families, "N", FitSettings(thin=0.5))
    assert seen.totals["thinning N heads"] == ("rows", 3)
    assert sum(seen.advances["thinning N heads"]) == 3
    assert seen.totals["fitting N heads, L2 1, thinned 0.5"] == ("steps", None)
    assert len(seen.advances["fitting N heads, L2 1, thinned 0.5"]) > 2


def test_pretraining_moves_by_steps_between_log_entries(tmp_path: Path, seen: Seen) -> None:
    pytest.importorskip("torch")
    from tests.test_training_loop import Stop, stopping
    from tests.training import trained

    with pytest.raises(Stop):
        trained(tmp_path / "run", steps=6, log_every=4, save_every=2, logged=stopping(4))
    assert seen.totals["training"] == ("steps", 6)
    assert seen.advances.pop("training") == [0, 1, 1, 1, 1]
    trained(tmp_path / "run", steps=6, log_every=100, save_every=2, resume=True)
    assert seen.advances["training"] == [2, 1, 1, 1, 1]


def test_a_call_that_reports_nothing_has_a_bar_with_its_time() -> None:
    drawn = threading.Event()
    with ticking(SimpleNamespace(update=lambda n: drawn.set())):
        assert drawn.wait()


def test_a_stage_within_another_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stderr", stream)
    shown: list[str | None] = []

    def show() -> None:
        shown.append(None if bar.current is None else f"{bar.current.desc} {bar.current.n} {bar.current.total}")

    with Bar() as bar:
        show()
        with stage("outer", "rows", 3):
            rows_done(2)
            show()
            with stage("inner", "steps", 5):
                rows_done(1)
                steps_done(6)  # more than was expected
                show()
            rows_done(1)
            show()
        with pytest.raises(ValueError, match="wrong"), stage("broken"):
            raise ValueError("wrong")
        show()
    assert shown == [None, "outer 2 3", "inner 6 None", None, None]


def test_compressed_files_count_as_they_lie_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "x.txt.gz"
    path.write_bytes(gzip.compress(b"a line\n" * 100_000))
    steps: list[int] = []
    with progress_to(steps.append, "bytes"):
        assert sum(1 for _ in open_lines(path)) == 100_000
    assert sum(steps) == path.stat().st_size


def test_nothing_is_counted_without_a_receiver_and_other_units_are_left_out(tmp_path: Path) -> None:
    path = commands.written(tmp_path / "x", b"abc")
    steps: list[int] = []
    with stage("alone"):
        bytes_read(1)
    with progress_to(steps.append, "rows"), open_bytes(path) as stream:
        assert stream.read() == b"abc"
    assert steps == []


def test_no_test_depends_on_the_speed_of_the_machine() -> None:
    """A test may wait up to a time (`monotonic`), but not measure how much it took; benchmarks/ does."""
    assert settings.default.deadline is None
    for path in sorted(Path(__file__).parent.glob("*.py")):
        found = re.search(r"deadline\s*=\s*[^N\s]|(process|thread)_[t]ime|perf_[c]ounter", path.read_text("utf-8"))
        assert not found, (path.name, found)
