"""Who imports whom: one way only, read from the source; and what a command may load, seen in a fresh process.

    core -> formats -> align -> grammar -> syntax -> transforms -> parsing -> pipeline -> store -> sources -> engine
         -> lexical -> training -> evaluation -> map -> distance -> display -> api -> commands -> studies -> explore
         -> cli

A module imports from its own row and from rows before it (docs/design/architecture.md). `cli` is imported by none.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

from tests.helpers import ROOT, conllu, python
from tests.runs import run

PACKAGE = ROOT / "derivlang"
ROWS = (
    "core", "formats", "align", "grammar", "syntax", "transforms", "parsing", "pipeline", "store", "sources", "engine",
    "lexical", "training", "evaluation", "map", "distance", "display", "api", "commands", "studies", "explore", "cli",
)  # fmt: skip
# Beyond the rows: formats read files and know no transform; sources know no pipeline.
BARRED = {
    "formats": {"transforms", "pipeline"},
    "sources": {"transforms", "pipeline"},
}
# Folders within a row, the lowest first: each imports from itself and from folders before it.
SUBFOLDERS = {
    "evaluation": ("measures", "tasks"),
    "training": ("languages", "streams", "objectives"),
}
HEAVY = (
    "tokenizers",
    "scipy",
    "matplotlib",
    "jinja2",
    "torch",
    "accelerate",
    "seqeval",
    "transformers",
    "stanza",
    "spacy",
    "datasets",
    "distributed",
    "gradio",
    "tqdm",
    "upath",
    "fsspec",
)
# Rows whose modules may import torch at the top, if no help page and no listing loads them (below).
SHARED = {
    "child",
    "main",
    "messages",
    "options",
    "generated",
    "types",
    "studies",
}  # cli modules that are no command
# Declarations of settings, from which the command line makes options and help pages.
LIGHT = {
    "derivlang.align",
    "derivlang.align.settings",
    "derivlang.commands",
    "derivlang.distance",
    "derivlang.distance.settings",
    "derivlang.core.dependencies",
    "derivlang.core.messages",
    "derivlang.core.policies",
    "derivlang.engine.options",
    "derivlang.core.settings",
    "derivlang.core.names",
    "derivlang.core.takes",
    "derivlang.core.version",
    "derivlang.core.errors",
    "derivlang.display",
    "derivlang.display.bar",
    "derivlang.evaluation.settings",
    "derivlang.evaluation.finetune_settings",
    "derivlang.evaluation.measures.base",
    "derivlang.evaluation.measures.registry",
    "derivlang.evaluation.tasks.base",
    "derivlang.evaluation.tasks.registry",
    "derivlang.formats.places",
    "derivlang.formats.progress",
    "derivlang.grammar",
    "derivlang.grammar.settings",
    "derivlang.lexical.settings",
    "derivlang.parsing.settings",
    "derivlang.sources.request",
    "derivlang.store",
    "derivlang.store.settings",
    "derivlang.studies",
    "derivlang.studies.settings",
    "derivlang.studies.study",
    "derivlang.training.settings",
}
OF_COMMANDS = {f"derivlang.commands.{path.stem}" for path in (PACKAGE / "commands").glob("*.py")}
ROOT_MODULES = {"", "__main__", "_version"}
MODULES = sorted(path.relative_to(ROOT) for path in PACKAGE.rglob("*.py"))


def row_of(module: str) -> str:
    """`derivlang.core.layers.tree` -> core; the package itself -> ''."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


@cache
def imports(path: Path, *, deep: bool = True) -> tuple[str, ...]:
    """Modules that a file imports: all, or (deep=False) only those that importing it imports."""
    return tuple(_imports(path, deep))


def _imports(path: Path, deep: bool) -> Iterator[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if is_module(node.module, alias.name))
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test) and not deep:
            todo += node.orelse
            continue
        if deep or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            todo += ast.iter_child_nodes(node)


@cache
def is_module(package: str, name: str) -> bool:
    folder = ROOT.joinpath(*package.split("."))
    return (folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists()


def module_name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def test_the_page_on_architecture_has_these_rows() -> None:
    page = (ROOT / "docs" / "design" / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^(\w+)(?:/|\.py) +(.*)$", page.partition("```text\n")[2].partition("```")[0], re.MULTILINE)
    assert tuple(name for name, _ in rows) == ROWS
    assert {name for name, note in rows if note.endswith("no transforms, no pipeline")} == set(BARRED)


def test_a_module_imports_from_rows_before_its_own() -> None:
    names = {path: module_name(path) for path in MODULES if row_of(module_name(path)) not in ROOT_MODULES}
    unknown = [str(path) for path, name in names.items() if row_of(name) not in ROWS]
    assert not unknown, "these are in no row: place them in docs/design/architecture.md and here"
    for path, name in names.items():
        row = row_of(name)
        others = {row_of(one) for one in imports(path) if one.startswith("derivlang")} - {"", "_version"}
        above = [other for other in others if ROWS.index(other) > ROWS.index(row)]
        assert not above, f"{path} imports from {above}, which stand above it"
        assert others.isdisjoint(BARRED.get(row, set())), f"{path}: {row} may not know {BARRED[row]}"


def test_a_subfolder_imports_from_those_before_it() -> None:
    for row, folders in SUBFOLDERS.items():
        for place, folder in enumerate(folders):
            later = tuple(f"derivlang.{row}.{name}" for name in folders[place + 1 :])
            found = [path for path in MODULES if path.parts[1:3] == (row, folder)]
            assert found
            above = {str(path): [one for one in imports(path) if one.startswith(later)] for path in found}
            assert not any(above.values()), above


def test_subfolders_import_one_another_one_way() -> None:
    """Of two folders of a row, only one imports the other, whether SUBFOLDERS lists them or not."""

    def folder(parts: tuple[str, ...]) -> str:
        return ".".join(parts[:3])

    inside = {path: module_name(path).split(".") for path in MODULES if len(path.parts) > 3}
    folders = {folder(tuple(parts)) for parts in inside.values()}
    found = {
        (folder(tuple(parts)), other)
        for path, parts in inside.items()
        for imported in imports(path)
        if (other := folder(tuple(imported.split(".")))) in folders
    }
    both = sorted((one, other) for one, other in found if one < other and (other, one) in found)
    assert not both, f"these folders import each other: {both}"


def test_no_module_imports_in_a_circle() -> None:
    """Among all imports: those inside functions and those for types, too."""
    names = {module_name(path) for path in MODULES}
    graph = {module_name(path): names.intersection(imports(path)) - {module_name(path)} for path in MODULES}
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, f"a circle: {' -> '.join([*above[above.index(name) :], name])}"
        if name not in done:
            for other in sorted(graph[name]):
                visit(other, (*above, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_core_does_no_input_or_output() -> None:
    rim = {"pathlib", "os", "io", "sys", "shutil", "tempfile", "subprocess", "time", "socket", "logging"}
    packages = sys.stdlib_module_names - rim | {"derivlang", "numpy", "pyarrow", "threadpoolctl"}
    paths = [path for path in MODULES if row_of(module_name(path)) == "core"]
    assert len(paths) > 20
    for path in paths:
        assert {name.partition(".")[0] for name in imports(path)} <= packages, path
        calls = [
            node.func for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8"))) if isinstance(node, ast.Call)
        ]
        assert {call.id for call in calls if isinstance(call, ast.Name)}.isdisjoint({"open", "print", "input"}), path


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    """Modules of training and evaluation may begin with torch, unless `ls`, `report` or a help page loads them."""
    listed = ("evaluation.report", "evaluation.measures", "evaluation.tasks", "training.objectives")
    loaded = tuple(f"derivlang.{folder}" for folder in listed)  # by lists, reports and studies
    for path in MODULES:
        name = module_name(path)
        found = {one.partition(".")[0] for one in imports(path, deep=False)}
        torch = row_of(name) in ("training", "evaluation") and name not in LIGHT and not name.startswith(loaded)
        own = {"upath"} if name == "derivlang.formats.remote" else set()  # loaded with the first URL
        assert found.isdisjoint(set(HEAVY) - own - ({"torch", "transformers"} if torch else set())), path


def test_only_the_command_line_knows_click_and_each_command_is_in_a_file() -> None:
    from derivlang.cli import main

    users = {path for path in MODULES if "click" in {name.partition(".")[0] for name in imports(path)}}
    assert {row_of(module_name(path)) for path in users} == {"cli"}
    files = {path.stem for path in MODULES if row_of(module_name(path)) == "cli"}
    assert {main.MODULES.get(name, name) for name in main.COMMANDS} == files - SHARED - {"__init__"}


def test_commands_load_the_package_when_they_are_called() -> None:
    light = LIGHT | {name.rpartition(".")[0] for name in LIGHT} | OF_COMMANDS | {"derivlang.core.errors"}
    light |= {f"derivlang.cli.{name}" for name in SHARED}
    for path in MODULES:
        if path.parts[1] == "cli":
            assert {name for name in imports(path, deep=False) if name.startswith("derivlang.")} <= light, path


# in a fresh process

CALL = """
import json, sys
from derivlang.cli.main import main
for arguments in {commands!r}:
    try:
        main(arguments)
    except SystemExit as end:
        assert not end.code, (arguments, end.code)
    print("\\nLOADED " + json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""


def loaded(*arguments: object) -> set[str]:
    """The packages that a command has loaded."""
    return loaded_after_each(arguments)[-1]


def loaded_after_each(*commands: Sequence[object]) -> list[set[str]]:
    """The packages that are loaded after each of several commands of one process."""
    return printed(CALL.format(commands=[[str(a) for a in arguments] for arguments in commands]))


def packages(code: str) -> set[str]:
    (found,) = printed(code)
    return found


def printed(code: str) -> list[set[str]]:
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("LOADED ")]
    return [set(json.loads(line.removeprefix("LOADED "))) for line in lines]


def test_help_loads_nothing_and_listing_no_tokenizer() -> None:
    light = {"torch", "datasets", "spacy", "pyarrow", "numpy", "pandas", "tqdm", "distributed"}
    commands = ("make", "pretrain", "evaluate", "study", "report")
    pages = (["--help"], ["--version"], *([name, "--help"] for name in commands))
    *_, after_help, after_list = loaded_after_each(*pages, ["ls"])
    assert after_help.isdisjoint(light)
    assert after_list.isdisjoint({"spacy", "datasets", "torch"})


def test_importing_derivlang_loads_nothing() -> None:
    code = "import json, sys, derivlang; print('LOADED ' + json.dumps([m.partition('.')[0] for m in sys.modules]))"
    assert packages(code).isdisjoint({"numpy", "pyarrow", "spacy", "datasets", "torch", "click"})


def test_making_from_given_words_and_labels_loads_no_tokenizer(tmp_path: Path) -> None:
    contents = {
        "tokens": "The cat sat .\n",
        "conllu": conllu([("s", ["1 a a X _ _ 0 root _ _", "2 . . PUNCT _ _ 1 punct _ _"])]),
        "tsv": "Ann\tB-PER\nsang\tO\n\nBo\tB-PER\n",
        "csv": "text,label\nthe cat sat .,1\n",
        "jsonl": '{"text":"the cat sat .","n":1}\n',
    }
    making: list[tuple[object, ...]] = []
    reading: list[tuple[object, ...]] = []
    for suffix, content in contents.items():
        source, out = tmp_path / f"a.{suffix}", tmp_path / suffix
        source.write_text(content, "utf-8")
        making.append(("make", "--t", "trans,perm", source, "-o", out, "--words", "space"))
        export = ("export", out, "--format", "pharaoh", "-o", tmp_path / f"links-{suffix}")
        reading += [("verify", out), ("undo", out, "-o", tmp_path / f"back-{suffix}"), export]
    words = ["1 He he PRON _ Number=Sing 2 nsubj _ _", "2 sees see VERB _ Number=Sing|Person=3|Tense=Pres 0 root _ _"]
    (tmp_path / "b.conllu").write_text(conllu([("s", words)]), "utf-8")
    row = '{"tokens":["He","sees"],"upos":["PRON","VERB"],"head":[2,0],"deprel":["nsubj","root"],"ner_tags":["O","O"]}'
    (tmp_path / "c.jsonl").write_text(row + "\n", "utf-8")
    for name in ("b.conllu", "c.jsonl"):
        making.append(("make", "--t", "identity", tmp_path / name, "-o", tmp_path / name[0]))
    for spec in ("case:nom-acc", "lemma,inv", "hop:words=1,drop:PRON"):
        making.append(("make", "--t", spec, tmp_path / "b", "-o", tmp_path / f"b-{spec[:4]}"))
    making.append(("make", "--t", "inv", tmp_path / "c", "-o", tmp_path / "c-inv", "--limit", 1))
    after = loaded_after_each(*making, *reading)
    for command, found in zip(making, after, strict=False):
        assert "pandas" not in found, command  # pyarrow would load it for nothing (core/arrow.py)
    heavy = {"spacy", "datasets", "torch", "transformers", "distributed", "upath", "fsspec"}
    for command, found in zip((*making, *reading), after, strict=True):
        assert found.isdisjoint(heavy), command


def test_making_from_raw_text_loads_spacy_alone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Didn't it? Yes.\n", "utf-8")
    found = loaded("make", "--t", "trans,inv", tmp_path / "a.txt", "-o", tmp_path / "out")
    assert "spacy" in found
    assert found.isdisjoint({"datasets", "torch", "transformers", "distributed"})


def test_training_and_evaluation_load_what_they_use(tmp_path: Path) -> None:
    sizes = ("--model", "tiny", "--vocab-size", 400, "--steps", 2, "--threads", 1)
    unused = {"sklearn", "seqeval", "matplotlib", "datasets", "spacy", "tensorboard", "wandb", "distributed"}
    asked = ("--task", "pos:demo", "--epochs", 1, "--seeds", 1, "--train-examples", 9, "--threads", 1)
    trained, evaluated = loaded_after_each(
        ("pretrain", "--source", "demo", "--t", "trans,inv", *sizes, "-o", tmp_path / "run"),
        ("evaluate", tmp_path / "run", *asked),
    )
    assert trained.isdisjoint(unused | {"pandas"})  # the tables of `evaluate` are made by `pa.array`, which loads it
    assert evaluated.isdisjoint(unused)


def test_a_study_loads_no_torch_itself(tmp_path: Path) -> None:
    study = """
[study]
source = "demo"
[cell]
t = "trans,inv"
[evaluate]
task = "pos,xnli"
measure = "alignment,contextual,links,perplexity,projection,retrieval,surprisal"
[factors]
objective = ["mlm", "ppa", "xlm-align"]
"""
    (tmp_path / "a.toml").write_text(study, "utf-8")
    heavy = {"torch", "transformers", "accelerate", "pandas", "scipy", "matplotlib", "spacy", "datasets"}
    assert loaded("study", tmp_path / "a.toml", "-o", tmp_path / "a", "--array").isdisjoint(heavy)
    code = "import json, sys, derivlang.studies.run; print('LOADED ' + json.dumps(list(sys.modules)))"
    assert packages(code).isdisjoint(heavy)


def test_the_server_of_a_study_loads_what_its_calls_use(tmp_path: Path) -> None:
    """A name that is not there would be passed over, and then every call would load it."""
    code = f"""
import json, sys
from importlib import import_module
from derivlang.cli import child
from derivlang.cli.main import main
for name in {{*child._TRAINING, *child._REPORT}}:
    import_module(name)
child._load(child._TRAINING)
before = set(sys.modules)
run = {str(tmp_path / "run")!r}
main(["pretrain", *"--source demo --t trans,inv --model tiny --vocab-size 400 --steps 2 --threads 1 -o".split(), run])
main(["evaluate", run, "--measure", "alignment"])
print("LOADED " + json.dumps([name for name in sys.modules if name not in before]))
"""
    large = ("transformers", "accelerate", "pandas", "sympy", "scipy", "derivlang.training", "derivlang.lexical")
    assert not [name for name in packages(code) if name.startswith(large)]


def test_a_report_loads_no_torch(tmp_path: Path) -> None:
    run(tmp_path / "run")
    assert loaded("report", tmp_path / "run", "-o", tmp_path / "report").isdisjoint({"torch", "transformers"})


def test_no_module_is_longer_than_a_reader_keeps_in_mind() -> None:
    long = {str(path): n for path in PACKAGE.rglob("*.py") if (n := path.read_text("utf-8").count("\n")) > 400}
    assert not long, "split what these modules do into concepts"


def test_scripts_import_what_is_there() -> None:
    """Programs beside the package, some of which no test runs, such as the one that fits the shipped grammars."""
    names = []
    for folder in ("benchmarks", "docs", "examples", "grammars", "tools"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            nodes = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
            names += [(node.module or "", one.name) for node in nodes for one in node.names]
    asked = sorted({(module, name) for module, name in names if module.partition(".")[0] == "derivlang"})
    assert len(asked) > 100
    gone = [f"{module}.{name}" for module, name in asked if not hasattr(import_module(module), name)]
    assert [name for name in gone if not is_module(*name.rsplit(".", 1))] == []
