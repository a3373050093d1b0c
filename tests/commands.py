"""The command line as the tests use it, and small sources written in a test's own folder.

run("make", "--t", "inv", wiki(tmp_path), "-o", out)             in this process: quick, stdout and stderr apart
forked("make", "--t", "inv", wiki(tmp_path), "-o", out)          in a copy of it: with other packages, or killed
spawn("make", "--t", "inv", wiki(tmp_path), "-o", out)           in its own: exit codes, tracebacks, signals
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from derivlang.cli.main import main
from derivlang.core.plugins import plug_ins
from derivlang.parsing.registry import _load

ROOT = Path(__file__).resolve().parents[1]

WIKI = """ \n = Harbour Chronicles III = \n \n Umiō no Harbour 3 : <unk> Chronicles ( old ) is a game . \
It is the third . \n \n Is it " new " ? It was , then . \n The end \n"""
ENTITIES = "Ada B-PER\nLovelace I-PER\nlives O\nin O\nLondon B-LOC\n. O\n\nHello O\nParis B-LOC\n! O\n"
PAIRS = [
    ("The cat sleeps.", "A cat is asleep.", "entailment"),
    ("He didn't go.", "He went home.", "contradiction"),
    ("It rains. She stays.", "She reads.", "neutral"),
]
TREES = """\
# sent_id = a-1
# text = Je vais  au parc (demain).
1\tJe\tje\tPRON\t_\t_\t2\tnsubj\t_\t_
2\tvais\taller\tVERB\t_\tMood=Ind\t0\troot\t_\tSpacesAfter=\\s\\s
3-4\tau\t_\t_\t_\t_\t_\t_\t_\t_
3\tà\tà\tADP\t_\t_\t5\tcase\t_\t_
4\tle\tle\tDET\t_\t_\t5\tdet\t_\t_
5\tparc\tparc\tNOUN\t_\t_\t2\tobl\t_\t_
6\t(\t(\tPUNCT\t_\t_\t7\tpunct\t_\tSpaceAfter=No
7\tdemain\tdemain\tADV\t_\t_\t2\tadvmod\t_\tSpaceAfter=No|Gloss=tomorrow
8\t)\t)\tPUNCT\t_\t_\t7\tpunct\t_\tSpaceAfter=No
9\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\tSpaceAfter=No

# sent_id = a-2
# text = 20 000 euros !
1\t20 000\t20000\tNUM\t_\t_\t2\tnummod\t_\t_
2\teuros\teuro\tNOUN\t_\t_\t0\troot\t_\t_
3\t!\t!\tPUNCT\t_\t_\t2\tpunct\t_\t_

"""
QUESTIONS: dict[str, Any] = {
    "version": "1",
    "data": [
        {
            "title": "Ada",
            "paragraphs": [
                {
                    "context": "Ada lives in London. She writes programs.",
                    "qas": [
                        {"id": "q1", "question": "Where?", "answers": [{"text": "London", "answer_start": 13}]},
                        {"id": "q2", "question": "What?", "answers": [{"text": "programs", "answer_start": 32}]},
                    ],
                }
            ],
        }
    ],
}


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(*arguments: object, code: int | None = 0) -> Ran:
    """A command in this process; an exception that is none of ours is raised, as is another exit code."""
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    ran = Ran(result.exit_code, result.stdout, result.stderr)
    assert code is None or ran.code == code, (ran.code, ran.out, ran.err)
    return ran


def forked(*arguments: object, code: int | None = 0, **options: Any) -> Ran:
    """A command in a `Copy` of this process."""
    ran = Copy(*arguments, **options).wait()
    assert code is None or ran.code == code, (ran.code, ran.out, ran.err)
    return ran


class Copy:
    """A command that runs in a copy of this process, which has torch and the like loaded.

    path: folders before the rest on sys.path. first: what the copy calls first. input: its standard input.
    """

    def __init__(
        self,
        *arguments: object,
        path: Sequence[Path] = (),
        first: Callable[[], object] = int,
        input: str | bytes = b"",
    ) -> None:
        self._folder = TemporaryDirectory(prefix="derivlang-tests-")
        streams = [Path(self._folder.name, name) for name in ("in", "out", "err")]
        for file in streams:
            file.touch()
        streams[0].write_bytes(input.encode() if isinstance(input, str) else input)
        self._said = streams[1:]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which a copy does not have
            self.pid = os.fork()
        if self.pid == 0:
            _in_copy(list(map(str, arguments)), streams, path, first)

    def is_running(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def wait(self) -> Ran:
        """Wait for its end. The code of one that is killed is the negative number of the signal."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        out, err = (file.read_bytes().decode("utf-8", "surrogateescape") for file in self._said)
        self._folder.cleanup()
        return Ran(code, out, err)


def _in_copy(
    arguments: list[str], streams: Sequence[Path], path: Sequence[Path], first: Callable[[], object]
) -> NoReturn:
    code = 1
    signal.alarm(120)
    try:
        for number, file in enumerate(streams):
            os.dup2(os.open(file, os.O_WRONLY if number else os.O_RDONLY), number)
        sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115
        sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8") for number in (1, 2))  # noqa: PTH123, SIM115
        sys.path[:0] = map(str, path)
        plug_ins.cache_clear()
        _load.cache_clear()
        first()
        main(arguments)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 (shown as Python shows it)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def environment(**changes: str) -> dict[str, str]:
    """The environment of `spawn`: this checkout, no hub, no data folder, the tests' own folder of parses."""
    parses = "DERIVLANG_PARSES"
    kept = {k: v for k, v in os.environ.items() if k == parses or not k.startswith(("DERIVLANG", "HF_", "COV"))}
    return {**kept, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "PYTHONIOENCODING": "utf-8", **changes}


def command_line(*arguments: object, warnings: str = "error") -> list[str]:
    return [sys.executable, "-W", warnings, "-m", "derivlang", *map(str, arguments)]


def spawn(*arguments: object, code: int | None = 0, input: str | None = None, **options: Any) -> Ran:
    """A command in its own process."""
    done = subprocess.run(
        command_line(*arguments),
        capture_output=True,
        env=options.pop("env", environment()),
        input=input.encode() if input is not None else None,
        timeout=60,
        check=False,
        **options,
    )
    ran = Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert code is None or ran.code == code, (ran.code, ran.out, ran.err)
    return ran


def on_terminal(*arguments: object) -> str:
    """What a command in its own process writes to a terminal."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    subprocess.run(command_line(*arguments), stdout=theirs, env=environment(), timeout=60, check=True)
    os.close(theirs)
    shown: bytes = os.read(ours, 1 << 16)
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def make(spec: str, source: object, out: Path, *options: object) -> Any:
    """The printed result of `make --json`."""
    return run("make", "--t", spec, source, "-o", out, "--json", *options).json


# Sources


def wiki(folder: Path, text: str = WIKI, name: str = "wiki.test.tokens") -> Path:
    return written(folder / name, text)


def wikitext103(folder: Path) -> Path:
    """A data folder with the three files of WikiText-103, the test split as above."""
    where = folder / "data-dir" / "wikitext-103"
    for split, text in (("train", " a b c . \n" * 5), ("valid", " d e . \n"), ("test", WIKI)):
        written(where / f"wiki.{split}.tokens", text)
    return folder / "data-dir"


def entities(folder: Path, text: str = ENTITIES, name: str = "ner.train.tsv") -> Path:
    return written(folder / name, text.replace(" ", "\t"))


def trees(folder: Path, text: str = TREES, name: str = "fr-ud-test.conllu") -> Path:
    return written(folder / name, text)


def pairs(folder: Path, name: str = "pairs.test.tsv") -> Path:
    rows = [("premise", "hypothesis", "label"), *PAIRS]
    return written(folder / name, "".join("\t".join(row) + "\n" for row in rows))


def questions(folder: Path, name: str = "qa.test.json") -> Path:
    return written(folder / name, json.dumps(QUESTIONS, ensure_ascii=False))


def written(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def cut_off(path: Path) -> None:
    """Cut a file off after its first half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


# Folders


def once(write: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """What fills a folder with a copy of what `write` makes once: nothing in it may hold the folder's path."""

    @cache
    def made() -> Path:
        folder = Path(mkdtemp(prefix="derivlang-tests-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        write(folder)
        return folder

    return lambda folder: shutil.copytree(made(), folder, dirs_exist_ok=True)


def snapshot(folder: Path) -> dict[str, bytes]:
    """All files of a folder, hidden ones too, by their names."""
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def leftovers(folder: Path) -> list[str]:
    """Temporary files, and shards in the set's own place that neither a manifest nor a record knows."""
    if not folder.is_dir():
        return []
    files = [str(f.relative_to(folder)) for f in sorted(folder.rglob("*")) if f.is_file()]
    manifest = folder / "derivlang.json"
    known = manifest.read_text("utf-8") if manifest.exists() else ""
    known += "".join(f"{path.stem}.parquet " for path in folder.glob(".derivlang/*/*.record"))
    return [f for f in files if f.endswith(".tmp") or (f.startswith("data/") and Path(f).name not in known)]


def shards(folder: Path) -> list[Path]:
    """The shards of a set; of an unfinished one those that are there so far."""
    return sorted(folder.glob("data/*.parquet")) or sorted(folder.glob(".derivlang/*/data/*.parquet"))


def rows(folder: Path, split: str) -> list[dict[str, Any]]:
    """The rows of a split, as its shards hold them."""
    found = sorted((folder / "data").glob(f"{split}-*.parquet"))
    return [row for file in found for row in pq.read_table(file).to_pylist()]


def change(file: Path, column: str, row: int, value: Any) -> None:
    """Another value in one cell of a shard, all else as it was (the hash of the file is another)."""
    with pq.ParquetFile(file) as parquet:
        groups = [parquet.read_row_group(i) for i in range(parquet.num_row_groups)]
    schema = groups[0].schema
    first = 0
    with pq.ParquetWriter(file, schema, compression="zstd", store_schema=False) as writer:
        for group in groups:
            if first <= row < first + group.num_rows:
                values = group[column].to_pylist()
                values[row - first] = value
                at = schema.get_field_index(column)
                group = group.set_column(at, schema.field(at), pa.array(values, schema.field(at).type))
            writer.write_table(group, row_group_size=max(group.num_rows, 1))
            first += group.num_rows


def edit_manifest(folder: Path, path: Sequence[str | int], value: Any) -> None:
    """Another value at one place of `derivlang.json`."""
    file = folder / "derivlang.json"
    manifest = json.loads(file.read_text("utf-8"))
    inner = manifest
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    file.write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n", "utf-8")
