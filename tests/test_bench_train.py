"""The measured speed of training: the program of tools/, and the estimate of a study."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from tests.commands import run
from tests.helpers import ROOT

pytest.importorskip("torch")


def test_the_program_prints_speed_and_share_of_the_matrix_rate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench_train.py", "--seconds", "0.5", "--threads", "1"])
    runpy.run_path(str(ROOT / "tools/bench_train.py"), run_name="__main__")
    speed, other = capsys.readouterr().out.splitlines()
    assert int(speed.split()[0].replace(",", "")) > 0
    assert "(cpu, fp32, 1 threads)" in speed
    assert 0 < float(speed.partition("): ")[2].split()[0].rstrip("%")) < 100
    assert "the loader makes" in other


def test_a_dry_run_measures_the_speed(tmp_path: Path) -> None:
    told = run("study", "align-mlm-tiny", "-o", tmp_path, "--dry-run", "--data-dir", tmp_path).out
    assert "sub-words per second (measured)" in told
