"""`derivlang ls`: list transforms, objectives, tasks, measures, sources, formats, scripts and languages of studies."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from derivlang.cli.generated import as_json, command_line
from derivlang.cli.messages import echo
from derivlang.commands.command import Command
from derivlang.core.settings import setting
from derivlang.formats.places import OptionalPath

_HASH = re.compile("[0-9a-f]{16,}")
# Of the lists without parameters: the heading, what is shown of an entry, and lines below the list.
_SECTIONS = {
    "tasks": ("Tasks", "  {name:<12}{summary} ({metrics})"),
    "measures": ("Measures", "  {name}"),
    "sources": (
        "Sources",
        "  {name:<12}{summary}",
        "  PATH        a file of a format below (also .gz, .zst), or a folder of them",
        "  URL         the same in a store: s3://, gs:// and what fsspec knows",
        "  hub:NAME/CONFIG@REVISION, or a derived set",
    ),
    "formats": ("File formats", "  {name:<12}{summary} ({suffixes})"),
    "scripts": ("Scripts", "  {name:<12}{sample:<16}{summary}"),
    "studies": ("Languages of published studies (derivlang ls --study NAME)", "  {name:<20}{title}"),
}
IN_SEQUENCE = "It may draw in sequence: in one process, from the first sentence of a corpus on."


@dataclass(frozen=True, eq=False, repr=False)
class _ListNames(Command[None]):
    """List transforms and objectives with parameters, tasks, measures, sources, file formats, and scripts with samples.

    \b
    derivlang ls --json
    derivlang ls --data OUT/data --unused
    derivlang ls --study kallini2024
    """

    study: str | None = setting(None, "Show the languages of a published study, with their specs.", metavar="NAME")
    data: OptionalPath = setting(
        None, "Show what a folder of data of runs holds: settings, size, last use.", excludes="--study"
    )
    unused: bool = setting(False, "Only what no run beside the folder or below names.", only_with="--data")

    def __call__(self) -> None:
        """Print the lists."""
        if self.data is not None:
            _show_data(Path(self.data), unused=self.unused)
            return
        if self.study is not None:
            _show_study(self.study)
            return
        from derivlang.core.plugins import Registry
        from derivlang.core.spec import text_of
        from derivlang.evaluation.measures.registry import MEASURES
        from derivlang.evaluation.tasks.registry import TASKS
        from derivlang.formats.base import formats
        from derivlang.sources.generated.base import GENERATORS
        from derivlang.sources.named import named_sources
        from derivlang.training.objectives.registry import OBJECTIVES
        from derivlang.transforms.field import field_studies
        from derivlang.transforms.registry import TRANSFORMS
        from derivlang.transforms.scripts import load_script, script_names

        parameterised: dict[str, Registry[Any]] = {
            "transforms": TRANSFORMS,
            "objectives": OBJECTIVES,
            "generators": GENERATORS,
        }
        scripts = [load_script(name) for name in script_names()]
        lists: dict[str, list[dict[str, Any]]] = {
            **{
                title: kinds.described(
                    lambda one: {"name": one.name, "summary": one.summary(), "parameters": one.parameters()}
                )
                for title, kinds in parameterised.items()
            },
            "tasks": TASKS.described(
                lambda task: {
                    "name": task.kind,
                    "summary": task.summary(),
                    "headline": task.headline().name,
                    "metrics": [column.name for column in task.columns],
                }
            ),
            # Their modules load torch.
            "measures": [{"name": name} for name in MEASURES.names()],
            "sources": [
                {"name": s.name, "summary": s.summary, "splits": list(s.patterns("")), "licence": s.licence}
                for s in named_sources().values()
            ],
            "formats": [{"name": f.name, "summary": f.what, "suffixes": list(f.suffixes)} for f in formats()],
            "scripts": [
                {"name": s.name, "summary": s.description, "sample": s.map_text("Welcome 2023")} for s in scripts
            ],
            "studies": [asdict(one) for one in field_studies().values()],
        }
        for entry in lists["transforms"]:
            # Whether it is keyed whatever its parameters are. Where that depends on them, `keyed` is a property.
            entry["keyed"] = TRANSFORMS.find(entry["name"]).keyed is True
        if as_json():
            echo(json.dumps(lists, ensure_ascii=False))
            return
        headings = ("Transforms", "\nObjectives", "\nGenerated sources (source:NAME=VALUE:key=value)")
        for heading, title in zip(headings, parameterised, strict=True):
            echo(heading)
            for entry in lists[title]:
                echo(f"  {entry['name']:<12}{entry['summary']}")
                for p in entry["parameters"]:
                    default = "" if p["default"] is None else text_of(p["default"])
                    echo(f"    {p['name']}={default}  ({p['type']})  {p['help']}")
                if not entry.get("keyed", True):
                    echo(f"    {IN_SEQUENCE}")
        for title, (heading, form, *more) in _SECTIONS.items():
            echo(f"\n{heading}")
            for entry in lists[title]:
                shown = {name: ", ".join(value) if isinstance(value, list) else value for name, value in entry.items()}
                if entry["name"] == "private":
                    shown["sample"] = "(private use)"
                echo(form.format_map(shown))
            for line in more:
                echo(line)


def _show_data(home: Path, *, unused: bool) -> None:
    """Print the folders of data, each with its recipe, its bytes and the day of its last use."""
    from datetime import datetime

    from derivlang.core.errors import StoreError
    from derivlang.store.made_of import RECIPE, known, recipe_of
    from derivlang.store.record import below, read_record

    if not home.is_dir():
        raise StoreError("there is no such folder", where=str(home), id="missing-folder")
    runs = home.resolve().parent.rglob("run.json") if unused else ()
    folders = (read_record(run, "record", {"folders?": list}, id="run").get("folders") for run in runs)
    named = {name for some in folders for name in some or ()}
    for folder in (folder for folder in known(home, "*", {}) if folder.name not in named):
        recipe, size = recipe_of(folder), sum(path.stat().st_size for path in below(folder, folder).values())
        used = datetime.fromtimestamp((folder / RECIPE).stat().st_mtime).isoformat(" ", "minutes")
        if as_json():
            echo(json.dumps({"name": folder.name, "bytes": size, "used": used, "recipe": recipe}, ensure_ascii=False))
            continue
        plain = {name: value for name, value in recipe.items() if isinstance(value, (str, int)) and value != ""}
        told = [f"{name} {value}" for name, value in plain.items() if not _HASH.fullmatch(str(value))]
        echo(f"{folder.name:<30}{size / 1000:12,.0f} kB  {used}  {', '.join(told)}")


def _show_study(name: str) -> None:
    """Print the languages of a study: name, spec and a derived sentence; trees of the sentence are parsed."""
    from derivlang.api import derive_chunks
    from derivlang.pipeline import Pipeline
    from derivlang.transforms.field import field_study

    study = field_study(name)
    if as_json():
        echo(json.dumps(asdict(study), ensure_ascii=False))
        return
    echo(f"{study.title} ({study.where})")
    echo(f"\n  {study.sample}")
    for language in study.languages:
        echo(f"\n  {language.name}")
        if language.source:
            echo(f"    {shlex.quote(language.source)}")
            continue
        for spec, what in ((language.spec, ""), (language.published, ", with the draws of the study's program")):
            if spec:
                pipeline = Pipeline.parse(spec)
                place = "" if pipeline.keyed else ", in sequence from this sentence on"
                echo(f"    --t {shlex.quote(spec)}{what}{place}")
                if pipeline.needs_counts():  # of the vocabulary of a text, which a sentence is not
                    echo("      (fitted on the text)")
                    continue
                if further := {name for one in pipeline.transforms for name in one.needs} - {"head", "upos"}:
                    echo(f"      (of a treebank with {' and '.join(sorted(further))})")
                    continue
                ((derived,),) = derive_chunks([[study.sample]], spec, words="space")
                echo(f"      {derived.text}")


command = command_line(
    _ListNames, "ls", run=lambda asked: asked(), bare=True, completed=False, json_help="Print the lists as JSON."
)
