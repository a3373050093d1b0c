"""Every test runs offline and on its own: no hub, a Hugging Face folder of its own, no data folder from outside."""

from __future__ import annotations

import atexit
import gc
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings, strategies

# As the command line, which loads the same libraries (cli/main.py).
gc.set_threshold(20_000)
# No test depends on the speed of the machine: Hypothesis sets no time limit for an example, nor for making examples.
# The examples are others in each run, so that few of them find what many would. `--hypothesis-profile long`: many.
_CHECKS = [HealthCheck.too_slow]
settings.register_profile("derivlang", deadline=None, suppress_health_check=_CHECKS, max_examples=40)
settings.register_profile("long", deadline=None, suppress_health_check=_CHECKS, max_examples=1000)
settings.load_profile("derivlang")

os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())  # pytest's own folders stay for a look
_HOME = tempfile.mkdtemp(prefix="derivlang-tests-")
tempfile.tempdir = _HOME  # what tests make beside them goes when they end, after what multiprocessing removes itself
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
# `datasets` reads these once, when it is imported: before any test module is.
os.environ.update(HF_HOME=_HOME, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")
# gcsfs reads it once, too. Otherwise it asks by gRPC what kind a bucket is, which no stand-in answers, and waits.
os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
os.environ.pop("DERIVLANG_DATA", None)
# Hundreds of commands run in processes of their own; without byte code, each would compile the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ["DERIVLANG_PARSES"] = str(Path(_HOME) / "parses")


@pytest.fixture(scope="session", autouse=True)
def _all_of_hypothesis() -> None:
    """Let Hypothesis import the module of `randoms`, which pytest rewrites, as it does at its first use.

    Deep inside a test, Python 3.11's compiler may fail at that: "AST constructor recursion depth mismatch".
    """
    strategies.randoms().validate()


@pytest.fixture(scope="session", autouse=True)
def _ids_of_errors() -> None:
    """Add the id of each error to the file that DERIVLANG_ERROR_IDS names, if any.

    After `DERIVLANG_ERROR_IDS=ids.txt pytest -n 2`, the ids that no test raises (`system` is of an OSError) are
    `LC_ALL=C sort -u ids.txt | LC_ALL=C comm -13 - tests/error_ids.txt`.
    """
    if file := os.environ.get("DERIVLANG_ERROR_IDS"):
        from derivlang.core.errors import DerivlangError

        make = DerivlangError.__init__

        def noted(self: DerivlangError, *args: Any, **fields: Any) -> None:
            make(self, *args, **fields)
            # also of forked processes and of pytest's workers: a line is one write. Some tests limit the size of files.
            with suppress(OSError), Path(file).open("a") as ids:
                ids.write(f"{self.id}\n")

        DerivlangError.__init__ = noted  # type: ignore[method-assign]


@pytest.fixture(scope="session", autouse=True)
def _no_options_in_python() -> None:
    """Hold that no error or warning of the Python interface names an option, but in a command to run."""

    from derivlang.core import messages

    translated = messages.in_python

    def checked(text: str, *arguments: Any) -> str:
        found = translated(text, *arguments)
        assert not re.search(r"(?<![\w-])--[a-z]", re.sub(r"`[^`]*`|derivlang [a-z].*", "", found)), found
        return found

    messages.in_python = checked


@pytest.fixture(scope="session")
def plugin_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks as after `pip install tests/plugin`."""
    from tests.helpers import install_plugin

    return install_plugin(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A window of Chromium, of the type `Browser`."""
    from tests.browser import opened

    with opened() as window:
        yield window


@pytest.fixture(scope="session")
def object_store() -> Iterator[Any]:
    """An S3 server, of the type `ObjectStore`."""
    from tests.object_store import opened

    with opened() as store:
        yield store


@pytest.fixture
def bucket(object_store: Any) -> Iterator[Any]:
    """A new, empty bucket of the server, of the type `Bucket`."""
    new = object_store.new_bucket()
    yield new
    new.remove()


@pytest.fixture
def in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A new, empty place in memory, of the type `InMemory`. As in a bucket, there are no empty folders."""
    pytest.importorskip("upath")
    from fsspec.implementations.memory import MemoryFileSystem

    from tests.object_store import InMemory

    monkeypatch.setattr(MemoryFileSystem, "makedirs", lambda *given, **named: None)
    new = InMemory(f"derivlang-{tmp_path.name}")
    yield new
    new.remove()


@pytest.fixture(scope="session")
def google_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A stand-in of Google Cloud Storage, of the type `GoogleStore`."""
    from tests.google_store import opened

    with opened(tmp_path_factory.mktemp("google")) as store:
        yield store


@pytest.fixture
def google_bucket(google_store: Any) -> Iterator[Any]:
    """A new, empty bucket of it, of the type `GoogleBucket`."""
    new = google_store.new_bucket()
    yield new
    new.remove()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A stand-in of the Hugging Face hub, of the type `Hub`."""
    constants = pytest.importorskip("huggingface_hub.constants")
    from tests.hub_server import TOKEN, hub_server

    with hub_server() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        pages = f"{server.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", pages)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


@pytest.fixture
def plugins(plugin_site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The sample package is installed in this process: its parsers `chain` and `chain-fr` are there."""
    from derivlang.core.plugins import plug_ins
    from derivlang.parsing.registry import _load

    def forget() -> None:
        plug_ins.cache_clear()
        _load.cache_clear()

    monkeypatch.syspath_prepend(str(plugin_site))
    forget()
    yield
    monkeypatch.undo()
    forget()


def pytest_configure(config: pytest.Config) -> None:
    """Bits are those of a processor: where there is a GPU, only `-m gpu` sees it."""
    if "gpu" not in config.option.markexpr.replace("not gpu", ""):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is there before the first test, torch and 18,000 tests among it, is not looked through for garbage again."""
    gc.collect()
    gc.freeze()
