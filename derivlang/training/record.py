"""What a run is: its record in run.json, its fingerprint, and whether a run to resume is the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
import transformers

from derivlang.core.messages import first_names
from derivlang.core.settings import declared
from derivlang.core.version import __version__
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.store.record import check_same, digest
from derivlang.training import run_folder
from derivlang.training.devices import processes
from derivlang.training.doses import doses_of
from derivlang.training.language import by_text
from derivlang.training.loader import Loader
from derivlang.training.plan import RunPlan
from derivlang.training.prepare import Prepared
from derivlang.training.settings import CHOSEN, RECORDED, TrainingSettings
from derivlang.training.translations import DICTIONARY

# Raise it when the same settings and data give another model.
RULE_VERSION = 3


@dataclass(frozen=True, slots=True, eq=False)
class RunInputs:
    """Everything that a run's model depends on.

    plan: its settings are with what follows from the data. loader: of all processes together. init: what it begins
    from, as of `init_of`; None for a new model.
    """

    plan: RunPlan
    prepared: Prepared
    loader: Loader
    init: dict[str, Any] | None = None

    @property
    def facts(self) -> dict[str, dict[str, Any]]:
        """What the streams record of themselves, by name."""
        return {one.stream.name: one.source.facts() for one in self.loader.streams}

    @property
    def unread(self) -> dict[str, Any]:
        """The settings that the objective does not read."""
        prepared = self.prepared
        of_files = 0 < len(prepared.pair_files) == len(prepared.pairs)  # no pairs are of the corpus
        given = {"dictionary": prepared.given, "pairs": of_files}
        reads = self.loader.objective.reads({name for name, is_file in given.items() if is_file})
        return {name: value for name, value in record_of(self.plan.settings).items() if name in CHOSEN.keys() - reads}

    @property
    def fingerprint(self) -> str:
        """16 hex digits of everything that the model depends on."""
        prepared = self.prepared
        parts = (
            record_of(self.plan.settings),
            self._config,
            [[data.fingerprint for data in prepared.encoded[length]] for length in sorted(prepared.encoded)],
            None if prepared.dictionary is None else prepared.dictionary.sha256,
            [facts.get("sha256") for facts in self.facts.values()],
            *(facts["shortest"] for facts in self.facts.values() if "shortest" in facts),  # a default is in no spec
            [str(one.size) for one in self.loader.streams],
            # 0.4.0 had another order of many rows
            *("sorted" for one in self.loader.streams if one.source.n > 1 << 21),
            self.init and self.init["weights"],
            RULE_VERSION,
            self.loader.objective.rules,
        )
        return digest(parts)

    @property
    def _config(self) -> dict[str, Any]:
        """The content of the model's config, without its name."""
        config = self.plan.model_config
        return {"type": config.type, "fields": dict(config.fields), "std": config.embedding_std}

    def check_same_run(self) -> None:
        """Raise StoreError if the run to resume had other settings or data."""
        before = self.plan.before
        if before is None or before["fingerprint"] == self.fingerprint:
            return
        recorded, wanted = _compared(before), _compared(self.record(0))
        # The same command means other settings if the model's own have changed since.
        former = " ".join(
            f"{declared(TrainingSettings)[name].option} {recorded[name]}"
            for name in self.plan.model_config.training
            if name in recorded and recorded[name] != wanted.get(name) and declared(TrainingSettings)[name].option
        )
        changed = self._changed(before)
        also = f"; if it is the same, pass {former}, as the model had then" if former else ""
        check_same(
            recorded,
            wanted,
            "is another run",
            where=str(self.plan.paths.run),
            fix=f"give the same command and text as before, or another folder{also}",
            id="other-run",
            words={
                "data": f"its encoded text is another one{changed}",
                "derived_data": f"the encoded text of its derived language is another one{changed}",
                "streams": "its sentence pairs are others",
                "dictionary": f"its dictionary is not {self.prepared.files.get(DICTIONARY, 'the given one')}",
                "fingerprint": f"the config of the model {self.plan.settings.model}, or derivlang's rules, have "
                "changed since",
            },
        )

    def _changed(self, before: Mapping[str, Any]) -> str:
        """Return which files of the source have changed since the record `before`, else the other texts that may."""
        was = {file["name"]: file["sha256"] for file in before.get("training_files") or ()}
        files = self.prepared.origin.files if self.prepared.origin else []
        changed = [file["name"] for file in files if was.get(file["name"], file["sha256"]) != file["sha256"]]
        if changed:
            return f": {first_names(changed)} {'has' if len(changed) == 1 else 'have'} changed"
        asked = self.plan.settings.asked
        texts = [asked[numbers[0]].text for numbers in by_text(asked)[1:]]
        return f": {first_names(texts)} may have changed" if texts else ""

    def reached(self, step: int, subwords: int, seconds: float, counts: Mapping[str, int]) -> dict[str, Any]:
        """Return what run.json says of how far a run has come. counts: of its first `step` steps."""
        pairs = self.prepared.dictionary
        entries = len(pairs.pairs) if self.loader.objective.dictionary and pairs is not None else None
        asked = self.plan.settings.asked
        names = [one.name for one in asked] if len(asked) > 2 else []
        doses = doses_of(Counter(counts), self.loader.objective, self.loader.streams, step, entries, names)
        return {"step": step, "tokens": subwords, "seconds": seconds, "doses": doses}

    def record(self, parameters: int) -> dict[str, Any]:
        """Return the content of run.json at the beginning. parameters: number of the model's weights."""
        plan, prepared, objective = self.plan, self.prepared, self.loader.objective
        settings, model_config, before = plan.settings, plan.model_config, plan.before
        unread, origin = self.unread, prepared.origin
        record = {
            "format": run_folder.FORMAT,
            "derivlang": __version__,
            "status": "training",
            "source": settings.source,
            "spec": Pipeline.parse(settings.spec).stored,
            "objective": settings.objective,
            "seed": settings.seed,
            "steps": settings.steps,
            "step": 0,
            "tokens": 0,
            "seconds": 0.0,
            "batch_size": settings.batch_size,
            "seq_len": settings.seq_len,
            "model": {
                "name": model_config.name,
                "type": model_config.type,
                "config": digest(self._config),
                "parameters": parameters,
                "tie": settings.tie,
                "language_ids": settings.language_ids,
            },
            "dictionary": self._dictionary() if objective.dictionary else None,
            "alignment_dictionary": None if objective.dictionary else self._dictionary(),
            "parallel": None if "parallel" in unread else settings.parallel,
            "data": "".join(data.fingerprint for data in prepared.texts[:1]),
            "folders": sorted(set(prepared.used)),
            "fingerprint": self.fingerprint,
            "pipeline": prepared.languages.fingerprint(),
            "training_files": origin and origin.files,
            "heldout_files": origin and origin.heldout,
            "settings": {name: value for name, value in record_of(self.plan.settings).items() if name not in unread},
            "unread": unread,
            "reading": None if plan.request is None else reading_of(plan.request),
            "streams": {
                one.stream.name: {
                    "rows_per_step": one.size if isinstance(one.size, int) else round(float(one.size), 4),
                    "length": one.source.length,
                    **one.source.facts(),
                }
                for one in self.loader.streams
            },
        }
        if settings.language:
            texts = zip(by_text(settings.asked)[1:], prepared.others, strict=True)
            files = {number: {"text_files": text.files} for numbers, text in texts for number in numbers}
            readers = zip(settings.asked, prepared.languages.readers, strict=True)
            record["languages"] = {
                one.name: {"spec": reader.pipeline.stored, "pipeline": reader.fingerprint, **files.get(number, {})}
                for number, (one, reader) in enumerate(readers)
                if number
            }
        if len(prepared.texts) > 1:
            record["derived_data"] = "+".join(data.fingerprint for data in prepared.texts[1:])
            record["heldout_overlap"] = prepared.overlap
        if self.init is not None:
            record["init"] = self.init
        if levels := levels_of(tuple(plan.session.factor)):
            record["factors"] = levels
        earlier = [] if before is None else before.get("environments") or []
        every = [*earlier, environment()]
        record["environments"] = [one for place, one in enumerate(every) if one not in every[:place]]  # in order, once
        return record

    def _dictionary(self) -> dict[str, Any] | None:
        """Return what run.json records of the dictionary: how it was chosen, or the name of the file that was given."""
        settings, prepared = self.plan.settings, self.prepared
        if prepared.dictionary is None:
            return None
        chosen = {"coverage": settings.dict_coverage, "by": settings.dict_by, "seed": settings.dict_seed}
        origin = {"file": prepared.given} if prepared.given else chosen
        return {**origin, "pairs": len(prepared.dictionary.pairs), "sha256": prepared.dictionary.sha256}


def _compared(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of run.json is named if a run to resume is another one."""
    dictionary = record.get("dictionary") or record.get("alignment_dictionary") or {}
    return {
        **record["settings"],
        **(record.get("unread") or {}),
        "init": (record.get("init") or {}).get("run"),
        "data": record.get("data"),
        "derived_data": record.get("derived_data"),
        "dictionary": dictionary.get("sha256"),
        "streams": {name: facts.get("sha256") for name, facts in (record.get("streams") or {}).items()},
        "fingerprint": record["fingerprint"],
    }


def record_of(settings: TrainingSettings) -> dict[str, Any]:
    """Return the settings as run.json keeps them, `language` only if it is given.

    Their spec means the same to later versions.
    """
    every = asdict(settings)
    record = {RECORDED.get(name, name): every[name] for name in every if name != "language" or settings.language}
    return record | {"spec": Pipeline.parse(settings.spec).stored}


def reading_of(request: SourceRequest) -> dict[str, Any]:
    """Return the options for reading a source as in run.json: a request without its name and data folder."""
    return {name: value for name, value in asdict(request).items() if name not in ("source", "data_dir")}


def levels_of(factors: tuple[str, ...]) -> dict[str, Any]:
    """Return the levels of --factor: numbers, true, false and quoted text as in JSON, any other text as it is."""
    levels: dict[str, Any] = {}
    for name, _, text in (one.partition("=") for one in factors):
        try:
            level = json.loads(text, parse_constant=str)
        except ValueError:
            level = text
        levels[name] = level if isinstance(level, (str, int, float)) else text
    return levels


def environment() -> dict[str, Any]:
    """Return what a model's weights depend on besides settings and data: libraries, device, threads."""
    return {
        "derivlang": __version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "threads": torch.get_num_threads(),
        "processes": int(processes().num_processes),
    }
