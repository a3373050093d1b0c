"""Show that a change left equal what users see: run the commands below with COMMIT and with this checkout.

python tests/equal.py COMMIT                             all cases
python tests/equal.py COMMIT --only sets,train/mlm       some groups and cases
python tests/equal.py --store FILE                       write what this checkout gives, to compare with later
python tests/equal.py --against FILE                     compare with that: numbers to 1e-6, all else by hashes

A case is a list of command lines. Each side runs it in a folder and a process of its own. Every file that it leaves is
then compared, as `KINDS` says, and so is what each command printed and its exit code. `VARYING` has what may differ.
A command that fails alike on both sides is equal, and is listed. pytest does not collect this file.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import hashlib
import json
import os
import re
import resource
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections import Counter
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
ROOT = HERE.parents[1]
Places = dict[str, Any]  # a place in a file, such as "row 3 tokens", and its value

# What may differ: versions and times. The folder of a case and the checkout are replaced, too.
VARYING = [
    (r"\b0\+unknown|\b\d+\.\d+\.\d+(\+g[0-9a-f]+(\.d\d+)?| \(commit [0-9a-f]+(, changed)?\))", "VERSION"),
    (r'^ "sha256": "\w+"', ' "sha256": "of a manifest, which has the version"'),
    (r'"(seconds|\w+_per_second)": [-+.\w]+(?=,)|"(tokens_per_second)": [-+.\w]+', r'"\1\2": 0'),  # not of plans
    (r'"seconds": [\d.]+\}$', '"seconds": 0}'),
    (r"\b[\d.,]+ (s|ms|seconds?|minutes?|hours?|min|h)\b", "TIME"),
    (r"\b[\d.,]+( k| M)? (words|tokens|sub-words) (per|a) second", "SPEED"),
]


# In the process of a case


def run_lines(lines: list[str]) -> None:
    """Run command lines one after the other, and write what each prints to `said/`, with its exit code."""
    Path("said").mkdir()
    for number, line in enumerate(lines, 1):
        first, *rest = shlex.split(line)
        name = f"said/{number:02}.{first}"
        for stream, end in ((1, "out"), (2, "err")):
            file = os.open(f"{name}.{end}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, stream)
            os.close(file)
        try:
            if first == "scores":
                _write_scores(*rest)
            else:
                sys.argv = ["derivlang", *(rest if first == "stopped" else [first, *rest])]
                if first == "stopped":
                    threading.Thread(target=_stop, args=(Path(rest[rest.index("-o") + 1]),), daemon=True).start()
                runpy.run_module("derivlang", run_name="__main__")
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException as error:  # noqa: BLE001 (a traceback is compared, too)
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            code = 70
        sys.stdout.flush()
        sys.stderr.flush()
        if first == "stopped":  # it says at which step
            for end in ("out", "err"):
                Path(f"{name}.{end}").write_text("")
        Path(f"{name}.code").write_text(f"exit code {code}\n")


def _stop(run: Path) -> None:
    while not (run / "checkpoints" / "step-00000010" / "state.json").exists():
        time.sleep(0.002)
    os.kill(os.getpid(), signal.SIGINT)


def _write_scores(run: str, file: str) -> None:
    import derivlang

    table = derivlang.scores(run).drop(columns="version")
    table.attrs = {}  # not JSON
    table.to_parquet(file)


# What a case left


def bytes_of(path: Path, clean: Callable[[str], str]) -> Places:
    """The lines of any file. Bytes that are no UTF-8 stay apart from all others."""
    lines = path.read_bytes().decode("utf-8", "surrogateescape").split("\n")
    return {f"line {number}": clean(line) for number, line in enumerate(lines, 1)}


def said(path: Path, clean: Callable[[str], str]) -> Places:
    """As `bytes_of`, with the values of lines of JSON by their names."""
    out: Places = {}
    for place, line in bytes_of(path, clean).items():
        try:
            out |= _leaves(json.loads(line), place)
        except ValueError:
            out[place] = line
    return out


def _leaves(value: Any, place: str) -> Places:
    if not isinstance(value, (dict, list)) or not value:
        return {place: value}
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    return {at: leaf for key, one in inner for at, leaf in _leaves(one, f"{place} {key}").items()}


def rows(path: Path, clean: Callable[[str], str]) -> Places:
    """The cells of a Parquet file, and the types of its columns."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    out: Places = {f"column {field.name}": str(field.type) for field in table.schema}
    for name in table.column_names:
        out |= {f"row {number} {name}": value for number, value in enumerate(table[name].to_pylist())}
    return {place: clean(value) if isinstance(value, str) else value for place, value in out.items()}


def cells(path: Path, clean: Callable[[str], str]) -> Places:
    """The cells of a CSV file, numbers as such."""
    with path.open(encoding="utf-8", newline="") as file:
        head, *lines = csv.reader(file)
    out: Places = {"columns": head}
    for number, line in enumerate(lines):
        for name, cell in zip(head, line, strict=True):
            out[f"row {number} {name}"] = _number(clean(cell))
    return out


def _number(cell: str) -> Any:
    try:
        return float(cell)
    except ValueError:
        return cell


def weights(path: Path, clean: Callable[[str], str]) -> Places:
    """The tensors of a safetensors file."""
    from safetensors.numpy import load_file

    return dict(load_file(path))


# The first pattern that fits a file says how it is compared; None: it is no result.
KINDS: list[tuple[str, Callable[[Path, Callable[[str], str]], Places] | None]] = [
    ("said/*", said),
    ("*/checkpoints/*", None),
    ("*/model/*.safetensors", weights),
    ("model/*.safetensors", weights),
    ("*/log.jsonl", said),
    ("*/tables/*.csv", cells),
    ("report/*", None),
    ("study/*", None),
    *((f"*/{name}", None) for name in ("run.json", "data/*/*", "evaluation*")),
    ("*.parquet", rows),
    ("*", bytes_of),
]


def left(folder: Path, checkout: Path) -> dict[str, Places]:
    """What a case left, by the names of the files."""

    def clean(text: str) -> str:
        for path, name in ((folder, "FOLDER"), (checkout, "CHECKOUT"), (ROOT, "CHECKOUT")):
            text = text.replace(str(path), name)
        for pattern, name in VARYING:
            text = re.sub(pattern, name, text)
        return text

    out = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        read = next(read for pattern, read in KINDS if fnmatch.fnmatch(name, pattern))
        if read is not None:
            out[name] = read(path, clean)
    return out


# Comparing


def golden(places: Places) -> Any:
    """What is stored of a file: numbers, rounded to 1e-6, mean and norm of each array, and one hash of all else."""
    numbers, rest = {}, {}
    for place, value in places.items():
        if isinstance(value, float):
            numbers[place] = round(value, 6)
        elif hasattr(value, "dtype"):
            flat = value.astype("float64").ravel()
            numbers |= {
                f"{place} mean": round(float(flat.mean()), 6),
                f"{place} norm": round(float(flat @ flat) ** 0.5, 6),
            }
            rest[place] = str(value.dtype), value.shape
        else:
            rest[place] = value
    return numbers | {"all else": hashlib.sha256(repr(rest).encode("utf-8", "surrogatepass")).hexdigest()[:16]}


def differ(old: Any, new: Any, tolerance: float) -> bool:
    if hasattr(old, "dtype") and hasattr(new, "dtype"):  # bit by bit
        return bool((old.dtype, old.shape, old.tobytes()) != (new.dtype, new.shape, new.tobytes()))
    if isinstance(old, float) and isinstance(new, float):
        return not (abs(old - new) <= tolerance * max(1.0, abs(old)) or repr(old) == repr(new))  # nan, too
    return type(old) is not type(new) or repr(old) != repr(new)


def shown(old: Any, new: Any) -> str:
    """Two values in one line: of long ones what stands around the first difference."""
    if hasattr(old, "dtype") and hasattr(new, "dtype") and old.shape == new.shape:
        at = int((old.ravel().view("u1") != new.ravel().view("u1")).argmax()) // old.itemsize
        return f"[{at}] of {old.size}: {old.ravel()[at]!r} (old), {new.ravel()[at]!r} (new)"
    one, other = (value if isinstance(value, str) else repr(value) for value in (old, new))
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    start = max(0, same - 30) if max(len(one), len(other)) > 100 else 0
    one, other = (
        "…" * bool(start) + text[start : start + 100] + "…" * (len(text) > start + 100) for text in (one, other)
    )
    return f"{one!r} (old), {other!r} (new)"


def differences(old: dict[str, Places], new: dict[str, Places], tolerance: float = 0.0) -> list[str]:
    """A line for each difference, in the order of files and places."""
    out = [
        f"{name}: only {side}"
        for some, side in ((old.keys() - new, "old"), (new.keys() - old, "new"))
        for name in sorted(some)
    ]
    for name in (name for name in old if name in new):
        one, other = old[name], new[name]
        for place in dict.fromkeys([*one, *other]):
            if place not in one or place not in other:
                out.append(f"{name}, {place}: only {'old' if place in one else 'new'}: {(one | other)[place]!r:.100}")
            elif differ(one[place], other[place], tolerance):
                out.append(f"{name}, {place}: {shown(one[place], other[place])}")
    return out


def one_of_each(found: list[str]) -> list[str]:
    """The first difference of each kind of place, with how many it has. Places that differ by numbers are of a kind."""
    kinds: dict[str, list[str]] = {}
    for line in found:
        kinds.setdefault(re.sub(r"\d+", "#", line.partition(": ")[0]), []).append(line)
    return [f"{lines[0]}{f'; {len(lines):,} in {kind}' * (len(lines) > 1)}" for kind, lines in kinds.items()]


def failing(files: dict[str, Places]) -> list[str]:
    """The commands that ended with an error: how many of a name and of an error's id."""
    out: Counter[str] = Counter()
    for name, places in files.items():
        if name.endswith(".code") and "exit code 0" not in places.values():
            told = " ".join(map(str, files[name.removesuffix("code") + "err"].values()))
            id = re.search(r"\[[a-z-]+\]", told)
            out[f"{name[8:-5]} {id[0] if id else told[:80]}".strip()] += 1
    return [f"{number} {what}" for what, number in out.items()]


# Sides


class Side:
    """A checkout with an environment of its own, whose libraries are those of this interpreter."""

    def __init__(self, name: str, checkout: Path, folder: Path) -> None:
        self.checkout, self.folder = checkout, folder / name
        venv.create(self.folder / "env", symlinks=True)
        (site,) = (self.folder / "env").glob("lib/python*/site-packages")
        libraries = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
        (site / "checkout.pth").write_text("".join(f"{path}\n" for path in [checkout, *libraries]), "utf-8")
        self.python = self.folder / "env" / "bin" / "python"
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("DERIVLANG", "PYTHON", "COV"))
        }
        self.environment = kept | {
            "DERIVLANG_PARSES": str(self.folder / "parses"), "HF_HOME": str(self.folder / "hub"), "HF_HUB_OFFLINE": "1",
            "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8", "COLUMNS": "100",
        }  # fmt: skip
        where = self.called("-c", "import derivlang; print(derivlang.__file__)", cwd=folder)
        if not Path(where.strip()).is_relative_to(checkout):
            raise SystemExit(f"equal: the environment has {where.strip()}, not the package of {checkout}")

    def called(self, *words: str, cwd: Path) -> str:
        words = (str(self.python), "-P", *words)
        done = subprocess.run(words, cwd=cwd, env=self.environment, capture_output=True, text=True, check=False)
        return done.stdout or done.stderr

    def run(self, case: str, lines: list[str], keep: bool) -> dict[str, Places]:
        folder = self.folder / "cases" / case
        folder.mkdir(parents=True)
        told = self.called(str(HERE), "--lines", json.dumps(lines), cwd=folder)
        found = left(folder, self.checkout)
        if told or len(list(folder.glob("said/*.code"))) < len(lines):
            found["process"] = {"ended": told}
        if not keep:
            shutil.rmtree(folder)
        return found


def chosen(cases: dict[str, str], only: str) -> dict[str, str]:
    wanted = only.split(",") if only else ["*"]
    unknown = [one for one in wanted if not any(_fits(name, one) for name in cases)]
    if unknown:
        raise SystemExit(f"equal: no case is called {', '.join(unknown)}; there are {', '.join(cases)}")
    return {name: lines for name, lines in cases.items() if any(_fits(name, one) for one in wanted)}


def _fits(name: str, wanted: str) -> bool:
    return fnmatch.fnmatch(name, wanted) or name.startswith(f"{wanted}/")


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", help="the old side: a commit of this repository")
    parser.add_argument("--only", default="", help="names of cases or groups, with commas")
    parser.add_argument("--keep", type=Path, help="folder, not there yet, that keeps what the commands wrote")
    parser.add_argument("--store", type=Path, help="file to write what this checkout gives to")
    parser.add_argument("--against", type=Path, help="file of --store to compare this checkout with")
    parser.add_argument("--lines", help=argparse.SUPPRESS)  # in the process of a case
    asked = parser.parse_args()
    if asked.lines:
        run_lines(json.loads(asked.lines))
        return 0
    if not (asked.commit or asked.store or asked.against):
        parser.error("give a commit, --store or --against")
    sys.path.insert(0, str(ROOT))  # not before: the process of a case has the package of its side
    from tests.equal_cases import CASES, USUAL, write_inputs

    cases = chosen(CASES, asked.only)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = asked.keep.resolve() if asked.keep else Path(tempfile.mkdtemp(prefix="derivlang-equal-"))
    folder.mkdir(parents=True, exist_ok=not asked.keep)
    git = ("git", "-C", str(ROOT), "worktree")
    try:
        sides = [Side("new", ROOT, folder)]
        if asked.commit:
            old = folder / "checkout"
            subprocess.run([*git, "add", "--quiet", "--detach", str(old), asked.commit], check=True)
            version = ROOT / "derivlang" / "_version.py"
            if version.exists():  # one for both sides, as hashes and sizes of files depend on it
                shutil.copy(version, old / "derivlang")
            sides.insert(0, Side("old", old, folder))
        write_inputs(folder / "in")
        files = HERE.parent / "cases" / "data", HERE.parent / "dictionaries"
        values = {**USUAL, "in": str(folder / "in"), "cases": str(files[0]), "files": str(files[1])}
        if data := os.environ.get("DERIVLANG_DATA"):
            values["data"] = data
        return compare(cases, sides, values, asked)
    finally:
        if asked.commit:
            subprocess.run([*git, "remove", "--force", str(folder / "checkout")], check=False)
        if not asked.keep:
            shutil.rmtree(folder, ignore_errors=True)


def compare(cases: dict[str, str], sides: list[Side], values: dict[str, str], asked: argparse.Namespace) -> int:
    """Run the cases on all sides, print some lines for each, and return the exit code.

    values: what stands for {name} in command lines; a case with another name is skipped.
    """
    before = json.loads(asked.against.read_text("utf-8")) if asked.against else {}
    stored, different = {}, []
    for case, text in cases.items():
        for _ in range(2):  # values may hold names
            text = re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), text)
        if "{data}" in text:
            print(f"skipped    {case}: $DERIVLANG_DATA is not set")
            continue
        lines = [line for line in map(str.strip, text.splitlines()) if line]
        start, used = time.monotonic(), _cpu()
        *old, new = [side.run(case, lines, bool(asked.keep)) for side in sides]
        stored[case] = {name: golden(places) for name, places in new.items()}
        found = [line for one in old for line in differences(one, new)]
        if asked.against:
            found += differences(before.get(case, {}), stored[case], 1e-6)
        told = f"{_cpu() - used:.1f} s of CPU, {time.monotonic() - start:.1f} s"
        print(f"{'DIFFERENT' if found else 'equal    '}  {case}: {len(lines)} commands, {len(new)} files, {told}")
        print("".join(f"    {line}\n" for line in one_of_each(found)), end="")
        if errors := failing(new):
            print(f"    end {'' if found else 'alike '}with an error: {', '.join(errors)}")
        sys.stdout.flush()
        different += [case] * bool(found)
    if asked.store:
        asked.store.write_text(json.dumps(stored, indent=0, ensure_ascii=False) + "\n", "utf-8")
    print(f"{len(different)} of {len(cases)} cases differ" + ": " * bool(different) + ", ".join(different))
    return int(bool(different))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
