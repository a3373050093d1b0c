"""The measured speed of training, and the speed that an estimate of a study assumes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import run
from tests.helpers import ROOT

pytest.importorskip("torch")


def test_the_program_prints_speed_and_share_of_the_matrix_rate() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools/bench_train.py", "--seconds", "0.5", "--threads", "1"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    speed, other = done.stdout.splitlines()
    assert int(speed.split()[0].replace(",", "")) > 0
    assert "(cpu, fp32, 1 threads)" in speed
    assert 0 < float(speed.partition("): ")[2].split()[0].rstrip("%")) < 100
    assert "the loader makes" in other


def test_a_dry_run_assumes_the_speed(tmp_path: Path) -> None:
    told = run("study", "align-mlm-tiny", "-o", tmp_path, "--dry-run", "--data-dir", tmp_path).out
    assert "at 20,000 sub-words per second (assumed)" in told
