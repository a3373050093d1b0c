"""Claim: the tiny model trains at least 2 x as many sub-words a CPU second as in a plain `transformers.Trainer` loop.

The same ModernBERT, rows, batch size, optimiser and schedule, one thread, start-up left out (it is mostly the import of
the libraries). The plain loop is what the library's examples do: a list of rows, its collator for masks, its dense
logits at every position. Ours is the loop of `derivlang pretrain`, masks, log and a last checkpoint included. The
library's loop with its sparse prediction (logits at masked positions) is shown beside: what of the difference is the
projection. So is a loop written by hand with logits at masked places only (aim: 1.0 x); it saves its model at the end.

    python train.py turns STEPS     both loops in one process, in turns: CPU ms a step
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from functools import partial

from measure import Report, Settings, Spread, alternate, script

_TIMES = 2
_STEPS = 300  # of 100 MB; fewer of less
_WAYS = ("derivlang", "plain loop", "Trainer", "Trainer, sparse")


def benchmark(settings: Settings) -> Report:
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    steps = max(2, min(_STEPS, round(_STEPS * settings.size / 100)))
    runs = alternate(settings.repeat, *(partial(script, "train.py", way, str(steps)) for way in _WAYS))
    found = [[json.loads(usage.output.splitlines()[-1]) for usage in part] for part in runs]
    first = found[0][0]
    report = Report(
        f"Training tiny ({first['parameters']:,} parameters) for {steps} steps of {first['subwords']:,} sub-words",
        ("way", "sub-words / CPU s", "start-up CPU s", "peak MB", "ours to it"),
    )
    for way, part, usages in zip(_WAYS, found, runs, strict=True):
        rate = report.figure(f"{way}: sub-words / CPU s", Spread(tuple(r["rate"] for r in part)))
        peak = report.figure(f"{way}: peak MB", Spread(tuple(usage.peak for usage in usages)))
        times = Spread(tuple(ours["rate"] / r["rate"] for r, ours in zip(part, found[0], strict=True)))
        start = report.figure(
            f"{way}: start-up CPU s", Spread(tuple(u.cpu - r["seconds"] for u, r in zip(usages, part, strict=True)))
        )
        report.row(way, f"{rate.median:,.0f}", f"{start.median:.1f}", f"{peak.median:.0f}", times.text())
        if way == "Trainer":
            report.figure("ours to Trainer", times)
            holds = times.median >= _TIMES if steps == _STEPS else None
            report.claim(f"at least {_TIMES} x the sub-words a CPU second", times.text(), holds)
    return report


def _measure(way: str, steps: int) -> dict[str, float]:
    import tempfile
    import time
    from pathlib import Path

    import torch

    from derivlang.training.config import ModelConfig
    from derivlang.training.loader import Loader, OpenStream
    from derivlang.training.model import build_model
    from derivlang.training.objectives.base import Context
    from derivlang.training.objectives.registry import read_objective
    from derivlang.training.plan import settings_of
    from derivlang.training.settings import SessionSettings
    from derivlang.training.speed import made_up, vocabulary_of
    from derivlang.training.streams.packed import Packed, PackedRows
    from derivlang.training.trainer import train

    torch.set_num_threads(1)
    options = {"model": "tiny", "spec": "trans,inv", "objective": "mlm", "steps": steps, "threads": 1}
    settings, _, _ = settings_of("made-up", options)
    data = made_up(settings.vocab_size, settings.seq_len, rows=2000)
    context = Context(vocabulary_of(settings.vocab_size, data.special_ids), settings.mask)
    rows = OpenStream(Packed(), PackedRows((data, data)), settings.batch_size, 0)
    loader = Loader((rows,), read_objective("mlm"), context, settings.seed)
    lm = build_model(
        ModelConfig.read("tiny"),
        context.vocabulary.size,
        settings.seq_len,
        data.special_ids,
        tie=True,
        language_ids=False,
        seed=1,
    )
    subwords = settings.batch_size * settings.seq_len
    parameters = sum(p.numel() for p in lm.parameters())
    with tempfile.TemporaryDirectory() as folder:
        if way == "derivlang":
            began = time.process_time()
            session = SessionSettings(save_every=10 * steps)
            train(Path(folder), settings, lm, loader, fingerprint="", options=session)
        elif way == "plain loop":
            began = time.process_time()
            _plain(lm, data, settings)
            lm.save_pretrained(Path(folder) / "model")
        else:
            lm.config.sparse_prediction = lm.sparse_prediction = way.endswith("sparse")
            trainer = _trainer(lm, data, settings, Path(folder))
            began = time.process_time()
            trainer.train()
        seconds = time.process_time() - began
    return {"rate": steps * subwords / seconds, "seconds": seconds, "subwords": subwords, "parameters": parameters}


def _plain(lm, data, settings):  # type: ignore[no-untyped-def]
    """The loop that one would write: logits at masked places only, rows without padding, a log every 50 steps."""
    import numpy as np
    import torch
    from torch.nn.functional import cross_entropy

    n, batch, special = data.n_instances(0), settings.batch_size, data.special_ids
    both = [data.rows(np.arange(n), np.full(n, language)).clean_ids for language in (0, 1)]
    rows, random = torch.from_numpy(np.concatenate(both)), torch.Generator().manual_seed(1)
    parameters = [p for p in lm.parameters() if p.requires_grad]
    decayed = [{"params": [p for p in parameters if (p.ndim > 1) == wide], "weight_decay": 0.0} for wide in (1, 0)]
    optimizer = torch.optim.AdamW(decayed, lr=settings.learning_rate, fused=True)
    warm, steps = round(settings.warmup * settings.steps), settings.steps
    rates = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: (step + 1) / warm if step < warm else (steps - step) / max(steps - warm, 1)
    )
    lm.train()
    order, total = torch.empty(0, dtype=torch.int64), 0.0
    for step in range(steps):
        if len(order) < batch:
            order = torch.randperm(len(rows), generator=random)
        ids, order = rows[order[:batch]], order[batch:]
        words = (ids != special.begin) & (ids != special.end) & (ids != special.pad)
        chosen = (torch.rand(ids.shape, generator=random) < settings.mask) & words
        how = torch.rand(ids.shape, generator=random)
        given = ids.masked_fill(chosen & (how < 0.8), special.mask)
        other = chosen & (how >= 0.9)
        given[other] = torch.randint(5, lm.config.vocab_size, (int(other.sum()),), generator=random)
        states = lm.base_model(input_ids=given).last_hidden_state
        loss = cross_entropy(lm.decoder(lm.head(states[chosen])), ids[chosen])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, settings.clip)
        optimizer.step()
        rates.step()
        optimizer.zero_grad(set_to_none=True)
        total = total + loss.detach()
        if (step + 1) % 50 == 0:
            print(step + 1, float(total) / 50, file=sys.stderr)
            total = 0.0


def _trainer(lm, data, settings, folder):  # type: ignore[no-untyped-def]
    """The library's trainer over the same rows of both languages."""
    import numpy as np
    from tokenizers import Tokenizer, models
    from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast, Trainer, TrainingArguments

    n = data.n_instances(0)
    rows = np.concatenate([data.rows(np.arange(n), np.full(n, language)).clean_ids for language in (0, 1)])
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    names += [f"w{i}" for i in range(len(names), lm.config.vocab_size)]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="<unk>")),
        bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>", mask_token="<mask>",
    )  # fmt: skip
    arguments = TrainingArguments(
        output_dir=str(folder), max_steps=settings.steps, per_device_train_batch_size=settings.batch_size, use_cpu=True,
        learning_rate=settings.learning_rate, warmup_steps=round(settings.warmup * settings.steps), weight_decay=0.0,
        logging_steps=50, save_strategy="no", report_to=[], disable_tqdm=True,
    )  # fmt: skip
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=settings.mask)
    examples = [{"input_ids": row, "attention_mask": [1] * len(row)} for row in rows.tolist()]
    return Trainer(model=lm, args=arguments, train_dataset=examples, data_collator=collator)


def _in_turns(steps: int) -> dict[str, float]:
    """Return the CPU milliseconds of a step of our loop and of the plain one, medians of six runs in this process."""
    runs = {way: [] for way in _WAYS[:2]}
    for _ in range(6):
        for way, found in runs.items():
            found.append(1e3 * _measure(way, steps)["seconds"] / steps)
    return {way: round(statistics.median(found), 2) for way, found in runs.items()}


if __name__ == "__main__":
    way, steps = sys.argv[1], int(sys.argv[2])
    print(json.dumps(_in_turns(steps) if way == "turns" else _measure(way, steps)))
