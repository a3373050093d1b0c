"""Means, contrasts and interactions of a table of scores, against a slow plain computation of the same."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd
import pytest

import derivlang
from derivlang.core.errors import DataError
from derivlang.evaluation.scores import counts_of
from derivlang.evaluation.statistics import estimate, holm, influences
from tests.frames import ALIGNMENT, LINKS, POS, frame, study

LEVELS = {"t": ["trans", "trans,inv"], "objective": ["mlm", "xlm", "align"]}
BASE = {"t": "trans", "objective": "mlm"}
KEYS = ["task", "metric", "regime", "split", "layer"]


@pytest.fixture(scope="module")
def scores() -> pd.DataFrame:
    return study(LEVELS, [POS, LINKS, ALIGNMENT], baseline=BASE)


@pytest.fixture(scope="module")
def found(scores: pd.DataFrame) -> pd.DataFrame:
    return derivlang.compare(scores)


class Plain:
    """The rules as they read: dictionaries, one row at a time."""

    def __init__(self, scores: pd.DataFrame):
        rows = defaultdict(list)
        for row in scores.to_dict("records"):
            layer = None if pd.isna(row["layer"]) else row["layer"]
            (influence,) = influences(row["formula"], [counts_of(row["formula"], row["counts"])])
            key = row["task"], row["metric"], row["regime"], row["split"], layer
            rows[row["factor.t"], row["factor.objective"], row["seed"], key].append((row["value"], influence))
        # fine-tuning seeds are averaged within a pre-training seed
        self.of = {
            place: (mean(v for v, _ in some), np.mean([i for _, i in some], axis=0)) for place, some in rows.items()
        }
        self.seeds = sorted(set(scores["seed"]))

    def sum(self, key: tuple[Any, ...], terms: list[tuple[float, str, str]]) -> Any:
        task, metric, regime, *rest = key
        sides = [(1, "sup"), (-1, "zs")] if regime == "delta" else [(1, regime)]
        values, vectors = [], []
        for seed in self.seeds:
            parts = [
                (w * sign, self.of[t, o, seed, (task, metric, side, *rest)])
                for w, t, o in terms
                for sign, side in sides
            ]
            values.append(sum(w * value for w, (value, _) in parts))
            vectors.append(sum(w * vector for w, (_, vector) in parts))
        return estimate(values, np.stack(vectors)) | {"values": values}


def terms_of(row: dict[str, Any]) -> list[tuple[float, str, str]]:
    """The conditions of a comparison with their weights."""
    t, objective = row["factor.t"], row["factor.objective"]
    if row["kind"] == "mean":
        return [(1, t, objective)]
    if row["kind"] == "interaction":
        return [
            (1, t, objective),
            (-1, BASE["t"], objective),
            (-1, t, BASE["objective"]),
            (1, BASE["t"], BASE["objective"]),
        ]
    if row["factor"] == "objective":
        others = LEVELS["t"] if pd.isna(t) else [t]
        return [(w / len(others), one, o) for one in others for w, o in ((1, objective), (-1, BASE["objective"]))]
    others = LEVELS["objective"] if pd.isna(objective) else [objective]
    return [(w / len(others), one, o) for o in others for w, one in ((1, t), (-1, BASE["t"]))]


def test_every_comparison_is_that_of_a_plain_computation(scores: pd.DataFrame, found: pd.DataFrame) -> None:
    plain = Plain(scores)
    for row in found.to_dict("records"):
        key = (*(row[name] for name in KEYS[:4]), None if pd.isna(row["layer"]) else row["layer"])
        expected = plain.sum(key, terms_of(row))
        assert row["value"] == pytest.approx(expected["value"])
        assert (row["low"], row["high"]) == pytest.approx((expected["low"], expected["high"]))
        assert row["values"] == pytest.approx(expected["values"])
        assert (row["n"], row["units"], row["why"]) == (3, expected["units"], "")
        if row["kind"] != "mean" or row["regime"] == "delta":
            assert row["p"] == pytest.approx(expected["p"])
        else:
            assert np.isnan(row["p"])


def test_every_comparison_is_there_once(found: pd.DataFrame) -> None:
    outcomes = 2 * 3 + 3 + 2  # POS in SUP, ZS and Δ; three layers; two figures of alignment
    # six conditions; two differences of objectives in two conditions and one in three, with means; 2 x 2 interactions
    assert found["kind"].value_counts().to_dict() == {
        "mean": 6 * outcomes, "difference": (2 * 3 + 1 * 4) * outcomes, "interaction": 2 * outcomes,
    }  # fmt: skip
    assert not found.duplicated(["kind", "factor", "contrast", "factor.t", "factor.objective", *KEYS]).any()


@pytest.mark.parametrize("test", ["level", "interaction"])
def test_the_family_is_what_is_tested_of_the_primary_outcome(scores: pd.DataFrame, test: str) -> None:
    found = derivlang.compare(scores, primary="pos.zs", test=test)
    kind = {"level": "difference", "interaction": "interaction"}[test]
    of_family = (found["task"] == "pos") & (found["metric"] == "accuracy") & (found["regime"] == "zs")
    of_family &= (found["kind"] == kind) & (found["conditions"] == 1)
    assert of_family.sum() == {"level": 2 * 2 + 3, "interaction": 2}[test]
    assert (found["family"] == np.where(of_family, "primary", "exploratory")).all()
    assert found.loc[of_family, "p_holm"].tolist() == pytest.approx(holm(found.loc[of_family, "p"].tolist()))
    assert found.loc[~of_family, "p_holm"].isna().all()


def test_without_a_primary_outcome_nothing_is_corrected(found: pd.DataFrame) -> None:
    assert set(found["family"]) == {"exploratory"}
    assert found["p_holm"].isna().all()


def test_the_primary_outcome_by_layer_is_that_of_the_last(scores: pd.DataFrame) -> None:
    found = derivlang.compare(scores, primary="links")
    assert set(found.loc[found["family"] == "primary", "layer"]) == {2}


def test_other_test_sets_are_not_paired_and_the_interval_says_so(scores: pd.DataFrame) -> None:
    other = scores.copy()
    inverted = (other["factor.t"] == "trans,inv") & (other["task"] == "pos")
    other.loc[inverted, "set_hash"] = "another"
    found = derivlang.compare(other)
    pos = found[(found["task"] == "pos") & (found["kind"] != "mean")]
    within = (pos["factor"] == "objective") & (pos["conditions"] == 1)
    assert set(pos.loc[within, "why"]) == {""}
    assert pos.loc[within, "units"].notna().all()
    for row in pos[~within].to_dict("records"):
        assert (row["why"], pd.isna(row["units"])) == ("other test sets", True)
        assert (row["low"], row["high"]) == pytest.approx(
            (estimate(row["values"])["low"], estimate(row["values"])["high"])
        )
    assert set(found.loc[found["task"] == "links", "why"]) == {""}


def test_only_seeds_that_all_sides_have_are_paired() -> None:
    cells = [("mlm", 1), ("mlm", 2), ("mlm", 3), ("xlm", 2), ("xlm", 3), ("xlm", 4), ("align", 9)]
    some = frame([{"study": "s", "seed": seed, "factors": {"objective": one}} for one, seed in cells])
    found = derivlang.compare(some, baseline={"objective": "mlm"})
    found = found[(found["metric"] == "accuracy") & (found["regime"] == "zs")].set_index(["kind", "factor.objective"])
    assert found.loc[("difference", "xlm"), "seeds"] == (2, 3)
    assert "needs 3 pre-training seeds" in found.loc[("difference", "xlm"), "why"]
    assert found.loc[("mean", "mlm"), "n"] == 3
    assert (found.loc[("difference", "align"), "n"], found.loc[("difference", "align"), "why"]) == (
        0,
        "no seed in common",
    )


def test_to_lack_a_factor_is_no_level() -> None:
    cells = [{"t": "trans"}, *({"t": "trans", "objective": one} for one in ("mlm", "xlm"))]
    found = derivlang.compare(frame([{"study": "s", "seed": 1, "factors": c} for c in cells]), {"objective": "mlm"})
    assert set(found.loc[found["kind"] == "difference", "contrast"]) == {"xlm − mlm"}


def test_values_that_are_nan_stay_in_what_is_made_of_them(scores: pd.DataFrame) -> None:
    bad = scores.copy()
    place = bad[(bad["task"] == "alignment") & (bad["run"] == "trans.xlm.2")].index
    bad.loc[place, "value"] = np.nan
    found = derivlang.compare(bad)
    here = found[(found["task"] == "alignment") & (found["kind"] == "mean")]
    nan = here["value"].isna()
    assert set(zip(here.loc[nan, "factor.t"], here.loc[nan, "factor.objective"], strict=True)) == {("trans", "xlm")}
    assert (here["n"] == 3).all()
    assert here.loc[nan, "why"].str.contains("NaN").all()


def test_a_metric_that_only_some_runs_have_is_compared_where_it_is(scores: pd.DataFrame) -> None:
    some = scores[(scores["task"] != "alignment") | (scores["factor.t"] == "trans")].copy()
    some.attrs = scores.attrs
    found = derivlang.compare(some)
    here = found[found["task"] == "alignment"]
    assert set(here["factor.t"]) == {"trans"}
    assert set(here["kind"]) == {"mean", "difference"}


def test_checkpoints_have_means_alone() -> None:
    some = frame([{"seed": seed, "steps": (10, 20, 30)} for seed in (1, 2, 3)])
    found = derivlang.compare(some)
    assert found["step"].value_counts(dropna=False).to_dict() == {10: 6, 20: 6, pd.NA: 6}
    assert set(found["kind"]) == {"mean"}


def test_a_table_of_somebody_else_needs_five_columns() -> None:
    rows = [{"run": f"{s}{o}", "seed": s, "task": "qa", "metric": "em", "value": 9.0 * s + (o == "b"), "set.model": o}
            for s, o in product((1, 2, 3), "ab")]  # fmt: skip
    found = derivlang.compare(pd.DataFrame(rows), baseline={"model": "a"}, primary="qa")
    (row,) = found[found["kind"] == "difference"].to_dict("records")
    assert (row["value"], row["n"], row["family"]) == (1.0, 3, "primary")
    assert pd.isna(row["units"])


def test_counts_that_do_not_fit_their_formula_are_one_error(scores: pd.DataFrame) -> None:
    bad = scores.copy()
    bad.at[0, "counts"] = np.arange(3, dtype=np.int32)
    with pytest.raises(DataError, match="counts of pos accuracy do not fit percent"):
        derivlang.compare(bad)
