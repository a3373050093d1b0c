"""The folder of a pre-trained run, read for evaluation: its record, its languages, and its model or a checkpoint's.

    of           model                               results                          counts of fine-tunings
    RUN          model/                              evaluation.json                  evaluation/
    RUN@100      checkpoints/step-00000100/model/    evaluation/step-00000100.json    evaluation/step-00000100/

A run of several languages (--language) is read as one of its source and a target: results are in evaluation/TARGET.json
and evaluation/TARGET/.

Any checkpoint that `transformers` loads as a masked language model works (RoBERTa, ModernBERT, BERT), and causal models
of the types GPT-2 and Llama. Without the head of a language model, the encoder is used and there is no perplexity.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel

from derivlang.core.errors import StoreError, UsageError, parse_errors, unknown
from derivlang.core.version import __version__
from derivlang.evaluation.columns import SIDES
from derivlang.formats.places import check_local
from derivlang.formats.spec_paths import files_of
from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.lexical.pretrained import from_pretrained, model_from_pretrained, quiet
from derivlang.pipeline import Pipeline
from derivlang.training import checkpoint
from derivlang.training import run_folder as runs
from derivlang.training.checkpoint import MODEL, hash_of_weights
from derivlang.training.config import CAUSAL, auto_class, check_finite
from derivlang.training.data_folder import LANGUAGES
from derivlang.training.devices import has_bf16
from derivlang.training.encoder import Encoder, check_head, longest_row
from derivlang.training.language import read_languages
from derivlang.training.languages import DERIVED, SOURCE, TOKENIZER, Languages, of_several, of_texts
from derivlang.training.languages import load as load_languages
from derivlang.training.own_parts import n_own_ids, own_parts, restore
from derivlang.training.run_folder import RUN, check_files

TARGET = "--target"


@dataclass(frozen=True, slots=True, eq=False)
class PretrainedRun:
    """A finished run, or a checkpoint of any run.

    facts: its `run.json`. config: the model's. weights: hash of the model's files, 16 hex digits. step: of the
    checkpoint; None for RUN/model. target: the name of one of several languages, or "".
    """

    folder: Path
    facts: dict[str, Any]
    languages: Languages
    config: Any
    weights: str
    step: int | None = None
    target: str = ""

    @classmethod
    def load(cls, folder: Path, step: int | None = None, target: str = "") -> PretrainedRun:
        """Read a run, or the checkpoint of a step. target: the name of one of several languages, or "".

        Raise StoreError if the folder is not a finished run, if there is no undamaged checkpoint of the step, if a file
        is not the one that run.json lists, or if the parts of the run do not fit each other.
        """
        check_local(folder, "models")
        facts = _facts(folder, finished=step is None)
        check_files(folder, facts, model=step is None)
        if facts["settings"].get("language"):
            languages, facts = _with_target(folder, facts, target)
        elif target:
            raise UsageError(
                f"{folder} has no languages with names", where=TARGET, fix="leave it out", id="unused-option"
            )
        else:
            languages = load_languages(folder, _pipeline(folder, facts))
        if step is not None:
            checkpoint.of_step(folder, step)
        path = _model(folder, facts, step)
        if not (path / "config.json").is_file():
            name = path.relative_to(folder) if path.is_relative_to(folder) else path  # of a checkpoint made elsewhere
            raise StoreError(
                f"there is no {name}/config.json", where=str(folder), fix="train it to its end", id="no-model"
            )
        config = _config(path, languages, several=bool(target))
        trained = cls(folder, facts, languages, config, hash_of_weights(path), step, target)
        trained.check_weights()
        if trained.language_ids and (getattr(config, "type_vocab_size", None) or 0) < 2:
            raise StoreError(
                "run.json says that the model has language ids, but the model has none",
                where=str(path),
                id="language-ids",
            )
        return trained

    @classmethod
    def of_checkpoint(cls, folder: Path) -> PretrainedRun:
        """Read a checkpoint that was trained elsewhere. Its tokenizer reads both languages, which are one.

        Raise StoreError if its config or its tokenizer cannot be read.
        """
        pipeline = Pipeline.parse("identity")
        languages = of_texts(pipeline, ForeignTokenizer.load(folder), pipeline.fit())
        facts = {"checkpoint": str(folder)}
        return cls(folder, facts, languages, _config(folder, languages), hash_of_weights(folder))

    @property
    def model_folder(self) -> Path:
        """The folder of the model, for `transformers`."""
        return _model(self.folder, self.facts, self.step)

    @property
    def results(self) -> Path:
        """The file of the results, which belong only to these weights."""
        return (
            self.cells.with_suffix(".json") if self.step is not None or self.target else self.folder / "evaluation.json"
        )

    @property
    def cells(self) -> Path:
        """The folder of the fine-tunings' counts."""
        folder = self.folder / "evaluation" / self.target
        return folder if self.step is None else folder / checkpoint.name_of(self.step)

    @property
    def language_ids(self) -> bool:
        """Whether the model gets the language number of each position."""
        return bool((self.facts.get("model") or {}).get("language_ids"))

    @property
    def longest(self) -> int:
        """The maximum number of sub-words in a row, with special ids."""
        return longest_row(self.model_folder) or 1 << 15

    @property
    def causal(self) -> bool:
        """Whether the model predicts each sub-word from those before it."""
        return self.config.model_type in CAUSAL

    @property
    def has_lm_head(self) -> bool:
        ends = ("ForCausalLM", "LMHeadModel") if self.causal else ("ForMaskedLM",)
        return any(name.endswith(ends) for name in getattr(self.config, "architectures", None) or ())

    def language_model(self, device: torch.device) -> Encoder:
        """Return the masked or causal language model, or the model without a head if there is none.

        Raise StoreError if it is damaged.
        """
        kind: Any = auto_class(self.config.model_type) if self.has_lm_head else AutoModel
        path = self.model_folder
        self.check_weights()
        with quiet(), _readable(path):
            module, loading_info = model_from_pretrained(kind, path, output_loading_info=True, dtype="float32")
            if self.language_ids:
                restore(module, path)
        missing = {name for name in loading_info["missing_keys"] if "pooler." not in name} | set(
            loading_info["mismatched_keys"]
        )
        if missing:
            raise StoreError(
                f"lacks {len(missing)} of the model's weights, e.g. {min(map(str, missing))}",
                where=str(path),
                fix="train it again, or restore the right file",
                id="model",
            )
        if self.facts.get("checkpoint") and self.has_lm_head:
            check_head(module, str(path))
        bf16 = device.type == "cuda" and has_bf16()
        return self.reader(
            Encoder(module.to(device), self.languages.special_ids, language_ids=self.language_ids, bf16=bf16)
        )

    def reader(self, model: Encoder) -> Encoder:
        """Return a model of the run that is given the source and this target, as languages 0 and 1."""
        return replace(model, numbers=self.languages.numbers if self.target else ())

    @property
    def target_name(self) -> str:
        """The name of the language that it is evaluated on, in names of sets."""
        return self.target or SIDES[DERIVED]

    def encoder(self, device: torch.device) -> Encoder:
        """Return the model without its head, loaded from the folder."""
        return self.language_model(device).base()

    def check_weights(self) -> None:
        """Raise StoreError if the model is another one than when it was read, or than run.json names."""
        told = self.facts.get("weights") if self.step is None else None
        if hash_of_weights(self.model_folder) != (told or self.weights):
            raise StoreError(
                "has other weights than when the run was made, or than when this evaluation began",
                where=str(self.model_folder),
                fix="restore it, or evaluate it in another folder",
                id="damaged",
            )

    def check_pipeline(self) -> None:
        """Raise StoreError if a file that the derived language depends on, or a rule, has changed since the training.

        For what derives text: only the embeddings do not depend on these files.
        """
        if self.languages.fingerprint() != self.facts["pipeline"]:
            raise StoreError(
                f"{self.languages.pipeline} is another derived language now: a file that it names, or a rule, has "
                "changed since the run was trained",
                where=str(self.folder / RUN),
                fix=f"restore the file, or use derivlang {self.facts.get('derivlang')}, which trained it",
                id="other-run",
            )

    @property
    def signature(self) -> dict[str, Any]:
        """Everything that the results of this run depend on."""
        facts = self.facts
        return {
            "derivlang": __version__,
            **{name: facts.get(name) for name in ("spec", "source", "objective", "model")},
            "steps": facts.get("step", facts.get("steps")) if self.step is None else self.step,
            **{name: facts.get(name) for name in ("seed", "data", "fingerprint")},
            "weights": self.weights,
            **({"target": self.target} if self.target else {}),
        }


def _with_target(folder: Path, facts: dict[str, Any], target: str) -> tuple[Languages, dict[str, Any]]:
    """Return the source and a target of a run of several languages, and its record as of a run of these two."""
    asked = read_languages(facts["settings"]["language"])
    names = [one.name for one in asked[1:]]
    if not target:
        fix = f"name one: {TARGET} {names[0]}"
        raise UsageError(f"{folder} is a run of {len(asked)} languages", where=TARGET, fix=fix, id="languages")
    if target not in names:
        raise unknown("target", target, names, where=TARGET)
    specs = {name: _pipeline(folder, told) for name, told in facts["languages"].items()}
    places = [(one, folder / LANGUAGES / one.name, specs[one.name]) for one in asked[1:]]
    every = of_several((one, load_languages(place, spec, folder / TOKENIZER)) for one, place, spec in places)
    (number,) = (number for number, one in enumerate(asked) if one.name == target)
    settings = {name: value for name, value in facts["settings"].items() if name != "language"}
    settings |= {"derived_source": asked[number].text, "halves": bool(asked[0].part or asked[number].part)}
    return every.of((SOURCE, number)), {**facts, **facts["languages"][target], "settings": settings}


def _pipeline(folder: Path, facts: Mapping[str, Any]) -> Pipeline:
    """Return the transforms that run.json has, with the files of the run."""
    return Pipeline.from_stored(facts["spec"], files_of(folder), where=str(folder / RUN))


def _facts(folder: Path, *, finished: bool) -> dict[str, Any]:
    facts = runs.read(folder)
    missing = [name for name in ("spec", "source") if not isinstance(facts.get(name), str)]
    if missing:
        raise StoreError(f"lacks {' and '.join(missing)}", where=str(folder / RUN), id="run")
    if finished and facts["status"] != "done":
        steps = ", ".join(map(str, checkpoint.steps(folder)))
        raise StoreError(
            f"the run is not finished: its status is {facts['status']!r}",
            where=str(folder),
            fix="run the same `derivlang pretrain` command again with --resume"
            + (f", or evaluate a checkpoint: RUN@STEP, of {steps}" if steps else ""),
            id="unfinished",
        )
    return facts


def _model(folder: Path, facts: dict[str, Any], step: int | None) -> Path:
    """Return the folder of the model: of a checkpoint that was trained elsewhere, its own."""
    if facts.get("checkpoint"):
        return Path(facts["checkpoint"])
    return (folder if step is None else folder / checkpoint.FOLDER / checkpoint.name_of(step)) / MODEL


def _config(path: Path, languages: Languages, *, several: bool = False) -> Any:
    """Return the config of a model. several: whether it has embeddings of other languages, too.

    Raise StoreError if it cannot be read, or has too few embeddings.
    """
    with quiet(), _readable(path):
        config = from_pretrained(AutoConfig, path)
        check_finite(config.to_dict())
    rows = getattr(config, "vocab_size", 0) - n_own_ids(own_parts(config))
    if rows < languages.size or (rows != languages.size and languages.are_mapped and not several):
        raise StoreError(
            f"the model has {rows:,} rows of embeddings, but its two languages have {languages.size:,} ids",
            where=str(path),
            fix="restore the run's own tokenizer and twin, or train the run again",
            id="vocabulary",
        )
    return config


def _readable(path: Path) -> AbstractContextManager[None]:
    """Turn the errors of safetensors, json, pickle and torch for a model's files into StoreError."""
    return parse_errors(str(path), "model", error=StoreError, id="model", fix="train it again, or restore it")
