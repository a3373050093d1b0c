"""Jobs: objects are handed on, so that a set in one shard parses its spec and fits its lexicon once."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from derivlang.core.arrow import string_array
from derivlang.engine.job import Job
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.transforms.fitting import Chain
from derivlang.transforms.trans import Trans
from tests.commands import make, wiki


def counted(monkeypatch: pytest.MonkeyPatch, cls: type, names: tuple[str, ...]) -> Counter[str]:
    """How often some methods of a class are called."""
    calls: Counter[str] = Counter()

    def counting(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            return method(*arguments, **options)

        return call

    for name in names:
        found = cls.__dict__[name]
        if isinstance(found, classmethod):
            monkeypatch.setattr(cls, name, classmethod(counting(name, found.__func__)))
        else:
            monkeypatch.setattr(cls, name, counting(name, found))
    return calls


@pytest.mark.parametrize("spec", ["trans,inv", "trans:overlap=50,perm"])
def test_one_shard_parses_and_fits_once(spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = wiki(tmp_path)
    pipelines = counted(monkeypatch, Pipeline, ("parse", "from_stored"))
    chains = counted(monkeypatch, Chain, ("fit",))
    fits = counted(monkeypatch, Trans, ("fit", "load"))
    make(spec, source, tmp_path / "out")
    assert pipelines == {"parse": 2}
    assert chains == {"fit": 1}
    assert fits == {"fit": 1}


@pytest.mark.parametrize(
    "spec", ["trans,inv", "trans:overlap=50:by=mass,perm", "syn:fr,trans:greek", "lex:toy.tsv,inv"]
)
def test_a_job_is_pickled_with_its_pipeline_and_lexicon(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent / "dictionaries")
    pipeline = Pipeline.parse(spec)
    types, counts = string_array(["the", "cat", "sat", "on", "."]), np.array([5, 2, 1, 1, 4])
    lexicon = pipeline.fit(types, counts)
    job = replace(Job(find(SourceRequest("demo")), pipeline), lexicon=lexicon, lexicon_text=pipeline.save(lexicon))
    data = pickle.dumps(job)
    again: Job = pickle.loads(data)
    assert again.pipeline == pipeline
    assert again.pipeline.fingerprint(again.lexicon_text) == pipeline.fingerprint(job.lexicon_text)
    assert again.lexicon.apply(types).equals(lexicon.apply(types))
    assert len(data) < 100_000  # a script goes by its name
