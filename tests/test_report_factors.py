"""Factors of a report, found from what varies among the runs; and the sections that runs make."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from derivlang.core.errors import DataError, StoreError, UsageError
from derivlang.evaluation.report.factors import NONE, Section, sections_of
from tests.frames import NER, POS, frame, study


def section(scores: pd.DataFrame, **asked: Any) -> Section:
    (found,) = sections_of(scores, **asked)
    return found


def runs(*some: dict[str, str], **more: Any) -> pd.DataFrame:
    """Loose runs with these settings, one seed each unless they give one."""
    return frame([{"seed": int(one.get("seed", 1)), "settings": one, **more} for one in some])


def test_what_varies_is_a_factor_and_what_does_not_is_a_caption() -> None:
    found = section(runs({"objective": "mlm", "steps": "9"}, {"objective": "xlm", "steps": "9"}))
    assert found.factors == ("objective",)
    assert found.levels["objective"] == ("mlm", "xlm")
    assert found.constant["steps"] == "9"


def test_a_factor_that_follows_from_earlier_ones_makes_no_condition() -> None:
    cells = [{"t": t, "order": t[-3:], "size": size} for t in ("trans", "trans,inv") for size in ("1", "2")]
    found = section(frame([{"study": "s", "seed": 1, "factors": cell} for cell in cells]))
    assert found.factors == ("t", "size")
    assert found.follows == ("order",)
    assert len(found.planned) == 4


def test_a_factor_with_a_baseline_makes_conditions_even_if_it_follows_from_x() -> None:
    """XLM is what has pairs, so the share of the pairs says which objective a run has."""
    cells = [{"objective": "mlm"}, *({"objective": "xlm", "parallel": share} for share in ("1", "10"))]
    told = {"x": "parallel", "lines": "objective", "baseline": {"objective": "mlm"}}
    scores = frame([{"study": "s", "seed": 1, "factors": cell} for cell in cells])
    scores.attrs["studies"] = {"s": told}
    found = section(scores)
    assert found.factors == ("parallel", "objective")
    assert [found.partner(one, "objective") for one in found.planned] == [None, ("", "mlm"), ("", "mlm")]
    assert all(map(found.label, found.planned))


def test_settings_stand_after_the_factors_of_a_study_and_follow_from_them() -> None:
    some = [{"study": "s", "seed": 1, "factors": {"goal": goal}, "settings": {"objective": goal, "rate": rate}}
            for goal in ("mlm", "xlm") for rate in ("15", "30")]  # fmt: skip
    found = section(frame([{**one, "run": str(at)} for at, one in enumerate(some)]))
    assert found.factors == ("goal", "rate")


@pytest.mark.parametrize(
    ("name", "levels", "factors"),
    [
        ("draws", ["1", "2"], ("objective",)),  # the seed's own values
        ("dict-seed", ["11", "12"], ("objective",)),
        ("coverage", ["25", "50"], ("objective", "coverage")),  # moves with the seed by chance
    ],
)
def test_another_name_of_the_seed_makes_no_condition(name: str, levels: list[str], factors: tuple[str, ...]) -> None:
    some = [{"objective": o, name: level, "seed": str(n)} for o in ("mlm", "xlm") for n, level in enumerate(levels, 1)]
    assert section(runs(*some)).factors == factors


def test_runs_of_other_objectives_are_never_seeds_of_one_condition() -> None:
    found = section(runs({"objective": "mlm", "seed": "1"}, {"objective": "xlm", "seed": "2"}))
    assert found.factors == ("objective",)


def test_a_baseline_without_a_level_is_compared_with_every_level() -> None:
    align = [{"objective": "align", "coverage": c, "mu": m} for c in ("25", "50") for m in ("1", "2")]
    found = section(runs({"objective": "mlm"}, *align), baseline={"objective": "mlm"})
    assert found.factors == ("objective", "coverage", "mu")
    assert found.levels["coverage"] == (NONE, "25", "50")
    partners = {condition: found.partner(condition, "objective") for condition in found.planned}
    assert partners.pop(("mlm", NONE, NONE)) is None
    assert list(partners.values()) == [("mlm", NONE, NONE)] * 4


def test_the_partner_has_all_other_levels_if_one_has() -> None:
    some = [{"objective": "mlm"}, *({"objective": o, "coverage": "25"} for o in ("mlm", "align"))]
    found = section(runs(*some), baseline={"objective": "mlm"})
    assert found.partner(("align", "25"), "objective") == ("mlm", "25")


def test_x_and_lines_come_first_even_if_they_follow_from_others() -> None:
    scores = study({"size": [1, 2], "t": ["trans", "inv"]}, [POS], x="t", lines="size")
    assert section(scores).factors == ("t", "size")
    assert section(study({"size": [1, 2], "t": ["trans", "inv"]}, [POS], baseline={"t": "inv"})).factors == (
        "t",
        "size",
    )


@pytest.mark.parametrize(
    ("levels", "found"), [(["b", "a"], ("b", "a")), ([100, 25], ("100", "25")), (["1e3", "2e2"], ("1e3", "2e2"))]
)
def test_levels_have_the_order_of_the_study(levels: list[Any], found: tuple[str, ...]) -> None:
    assert section(study({"level": levels}, [POS])).levels["level"] == found


def test_numbers_without_an_order_are_sorted() -> None:
    found = section(runs(*({"share": share} for share in ("100", "25", "0"))))
    assert found.levels["share"] == ("0", "25", "100")


def test_settings_that_differ_by_task_belong_to_their_caption() -> None:
    found = section(frame([{"seed": 1}, {"seed": 2}], [POS, NER]))
    assert found.of_task["pos"]["epochs"] == "1"
    assert found.of_task["ner"]["epochs"] == "2"
    assert (found.factors, found.constant["lr"]) == ((), "0.002")


def test_a_setting_of_a_task_that_varies_between_runs_is_a_factor() -> None:
    scores = frame([{"seed": 1, "run": "a"}, {"seed": 1, "run": "b"}], [POS, NER])
    scores["set.epochs"] = scores["set.epochs"].astype(object)
    scores.loc[(scores["run"] == "b") & (scores["task"] == "ner"), "set.epochs"] = "9"
    assert section(scores).levels["epochs"] == ("ner 2", "ner 9")


def test_a_run_without_a_task_differs_in_nothing_else() -> None:
    found = section(frame([{"seed": 1, "run": "a"}, {"seed": 2, "run": "b", "tasks": [POS]}], [POS, NER]))
    assert found.factors == ()


def test_cells_without_a_result_are_planned() -> None:
    scores = study({"t": ["trans", "inv"], "objective": ["mlm", "xlm"]}, [POS])
    left = scores[(scores["factor.t"] != "inv") | (scores["factor.objective"] != "xlm")].copy()
    left.attrs = scores.attrs
    found = section(left)
    assert found.planned == {(t, o): 3 for t in ("trans", "inv") for o in ("mlm", "xlm")}
    assert len({condition for condition, _ in found.runs.values()}) == 3


def test_cells_of_another_grid_lack_a_factor() -> None:
    cells = [{"t": "trans"}, {"t": "inv"}, {"t": "inv", "choice": "untied"}]
    found = section(frame([{"study": "s", "seed": 1, "factors": cell} for cell in cells]))
    assert list(found.planned) == [("trans", NONE), ("inv", NONE), ("inv", "untied")]


def test_planned_cells_have_the_targets_of_their_runs() -> None:
    """A cell without a result may be evaluated on all of them; none of them has a condition without a target."""
    some = [{"study": "s", "seed": 1, "run": f"{goal}@{target}", "factors": {"goal": goal, "target": target}}
            for goal in ("mlm", "xlm") for target in ("de", "fr")]  # fmt: skip
    scores = frame(some[:3])
    scores.attrs["studies"] = {"s": {"cells": [{"run": goal, "factors": {"goal": goal}} for goal in ("mlm", "tlm")]}}
    found = section(scores)
    assert found.factors == ("goal", "target")
    assert found.planned.keys() == {("mlm", "de"), ("mlm", "fr"), ("tlm", "de"), ("tlm", "fr"), ("xlm", "de")}


def test_settings_that_differ_with_a_factor_are_told() -> None:
    """What an objective implies by nature is not: it would say the same of every report."""
    mlm, align = {"ft_epochs": "4", "mask": "15"}, {"ft_epochs": "1", "mu": "1", "parameters": "9"}
    found = section(runs({"objective": "mlm", **mlm}, {"objective": "align", **align}))
    assert found.factors == ("objective",)
    assert found.notes[1:] == ("ft_epochs differs with objective: 4 (mlm), 1 (align).",)
    some = [{"objective": o, "model": m, "limit": o + m} for o in ("mlm", "xlm") for m in ("tiny", "base")]
    assert section(runs(*some)).notes[1:] == ("limit differs between conditions: mlmtiny, mlmbase, xlmtiny, xlmbase.",)
    assert not section(runs({"epochs": "1", "ft_epochs": "1"}, {"epochs": "2", "ft_epochs": "2"})).notes[1:]


def test_a_run_of_no_steps_is_the_untrained_control() -> None:
    trained = [{"objective": o, "steps": "9"} for o in ("mlm", "xlm")]
    found = section(runs(*trained, {"objective": "mlm", "steps": "0"}))
    assert found.factors == ("objective", "control")
    assert found.untrained(("xlm", NONE)) == ("mlm", "untrained")
    assert not found.notes[1:]
    assert section(runs(*trained)).factors == ("objective",)


def test_an_untrained_model_is_the_floor_whatever_the_steps() -> None:
    some = [{"objective": o, "steps": steps} for o in ("mlm", "xlm") for steps in ("9", "20")]
    found = section(runs(*some, {"objective": "mlm", "steps": "0"}))
    assert set(found.factors) == {"objective", "steps", "control"}
    trained = [one for one in found.planned if found.levels_of(one)["control"] == NONE]
    floors = {found.untrained(one) for one in trained}
    assert len(trained) == 4
    assert [found.levels_of(one) for one in floors if one] == [
        {"objective": "mlm", "steps": NONE, "control": "untrained"}
    ]
    assert None not in floors


@pytest.mark.parametrize("untrained", [["mlm"], ["mlm", "xlm"]])
def test_an_untrained_model_is_in_no_contrast(untrained: list[str]) -> None:
    some = [{"objective": o, "steps": "9"} for o in ("mlm", "xlm")]
    found = section(runs(*some, *({"objective": o, "steps": "0"} for o in untrained)), baseline={"objective": "xlm"})
    partners = {one: found.partner(one, "objective") for one in found.planned}
    assert {one: other for one, other in partners.items() if other} == {("mlm", NONE): ("xlm", NONE)}


def test_a_trained_control_of_its_own_level_is_compared() -> None:
    """Equal embeddings are not MLM as the others have it; only aligned has no other runs."""
    cells = [{"o": "mlm"}, {"o": "xlm"}, {"o": "mlm", "control": "copied"}, {"o": "only", "control": "only aligned"}]
    scores = frame([{"study": "s", "seed": 1, "factors": cell} for cell in cells])
    found = section(scores, baseline={"o": "xlm"})
    partners = {one: found.partner(one, "o") for one in found.planned}
    assert {one for one, other in partners.items() if other} == {("mlm", NONE), ("only", "only aligned")}


def test_runs_of_other_sources_differ_by_the_source() -> None:
    of_source = [
        {"steps": "9", "vocab_size": "300", "source": "a"},
        {"steps": "20", "vocab_size": "900", "source": "b"},
    ]
    some = [{"objective": o, **one} for one in of_source for o in ("mlm", "xlm")]
    found = section(runs(*some, {**some[2], "steps": "0"}))
    assert found.factors == ("source", "objective", "control")
    assert [found.untrained((source, "mlm", NONE)) for source in "ab"] == [None, ("b", "mlm", "untrained")]
    assert "steps differs with source: 9 (a), 20 (b)." in section(runs(*some)).notes


@pytest.mark.parametrize("name", ["", "s"])
def test_two_runs_that_differ_in_nothing_are_an_error_with_both_names(name: str) -> None:
    scores = frame([{"study": name, "seed": 1, "run": "first"}, {"study": name, "seed": 1, "run": "second"}])
    with pytest.raises(StoreError, match=r"first.*second.*the same factors, settings and seed"):
        sections_of(scores)


def test_the_same_run_may_be_in_two_studies_and_each_is_a_section() -> None:
    scores = frame([{"study": study, "seed": 1, "run": "a"} for study in ("one", "two", "")])
    assert [one.name for one in sections_of(scores)] == ["one", "two", ""]


def test_a_baseline_or_a_primary_outcome_that_is_not_there_is_one_error() -> None:
    scores = study({"objective": ["mlm", "xlm"]}, [POS])
    for baseline in ({"objective": "mml"}, {"objectve": "mlm"}):
        with pytest.raises(UsageError, match=r"objective mlm"):
            section(scores, baseline=baseline)
    with pytest.raises(UsageError, match=r"pos\.zs"):
        section(scores, primary="pos.sz")
    with pytest.raises(UsageError, match="interaction"):
        section(scores, test="interactions")


def test_what_a_study_plans_may_have_no_result_yet_and_a_note_says_so() -> None:
    told = {"baseline": {"objective": "mlm"}, "primary": "ner.zs", "changed_primary": True}
    scores = study({"objective": ["mlm", "xlm", "align"]}, [POS], seeds=[1], **told)
    left = scores[scores["factor.objective"] != "mlm"].copy()
    left.attrs = scores.attrs
    notes = " ".join(section(left).notes)
    for text in ("objective mlm has no result", "ner.zs has no result", "was changed after", "one seed"):
        assert text in notes


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda f: f.drop(columns=["metric", "value"]), "no column metric, value"),
        (lambda f: f.iloc[:0], "there are no scores"),
        (lambda f: f.assign(value=["x", *f["value"][1:].astype(object)]), "row 1 has the value 'x'"),
        (lambda f: f.assign(seed=[None, *f["seed"][1:]]), "row 1 has the seed"),
        (lambda f: f.assign(formula="median"), "'median' is not one of the formulas"),
        (lambda f: pd.concat([f, f[:1]]), "run-0 has two values of pos accuracy"),
    ],
)
def test_a_table_that_is_none_of_scores_is_one_error(spoil: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        sections_of(spoil(frame([{"seed": 1}])))
