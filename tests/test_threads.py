"""Matrix products of derivlang run on one BLAS thread, and a user's own numpy code keeps its threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

import derivlang
from derivlang.align import align as aligners
from derivlang.core import threads
from derivlang.core.threads import one_thread
from derivlang.grammar import exact, scores
from derivlang.grammar.families import Families
from derivlang.grammar.grammar import load_grammar
from derivlang.grammar.order_model import OrderModel
from derivlang.parsing import inference

LIMITED = pytest.mark.usefixtures("two_threads")


def n_threads() -> set[int]:
    """The threads of the BLAS libraries that numpy uses. An earlier test may have loaded that of scipy, too."""
    return {found["num_threads"] for found in threads._blas().info()}


@pytest.fixture
def two_threads() -> Iterator[None]:
    """A user who lets numpy have two threads."""
    with threadpool_limits(2, user_api="blas"):
        assert n_threads() == {2}
        yield
        assert n_threads() == {2}, "the limit outlived derivlang's call"


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], list[set[int]]]:
    """Watch a function that multiplies matrices: the threads of each of its calls."""

    def watch(owner: Any, name: str) -> list[set[int]]:
        seen: list[set[int]] = []
        original = getattr(owner, name)

        def recorded(*args: Any, **options: Any) -> Any:
            seen.append(n_threads())
            return original(*args, **options)

        monkeypatch.setattr(owner, name, recorded)
        return seen

    return watch


@LIMITED
def test_the_parser_and_the_grammar_multiply_on_one_thread_in_derive(spy: Any) -> None:
    parser, grammar = spy(inference.Network, "_linear"), spy(scores, "flat")
    spec = "syn:fr:temperature=0.97"  # a model of no other test: what is remembered of those needs no products
    derivlang.derive("The strange old cat that we saw slept on a mat in the garden .", spec)
    assert parser
    assert grammar
    assert all(threads == {1} for threads in parser + grammar)


@LIMITED
@pytest.mark.parametrize("n_dependents", [4, 10])
def test_a_grammar_multiplies_on_one_thread(n_dependents: int, spy: Any) -> None:
    families = Families.of([["@VERB&@", *["NOUN&obl"] * n_dependents]])
    model = OrderModel(load_grammar("fr"), load_grammar("en"))
    seen = spy(exact, "_filled")
    model.log_probs(families, np.arange(n_dependents + 1, dtype=np.int32))
    assert seen
    assert all(threads == {1} for threads in seen)


@LIMITED
def test_an_aligner_multiplies_on_one_thread(spy: Any) -> None:
    from derivlang.align import train

    seen = spy(train, "_posteriors")
    aligners.align(["a b c", "b c"], ["x y z", "y z"])
    assert seen
    assert all(threads == {1} for threads in seen)


@LIMITED
def test_projections_are_found_on_one_thread(spy: Any) -> None:
    from derivlang.evaluation.measures import alignment

    svd = spy(np.linalg, "svd")
    alignment.principal(np.eye(3))
    assert svd == [{1}]


def test_blocks_that_overlap_in_several_threads_leave_nothing_behind() -> None:
    """Entered first, second; left first, second: the second must not restore the limit of the first."""
    found: dict[str, set[int]] = {}
    entered = {name: threading.Event() for name in ("first", "second")}
    leave = {name: threading.Event() for name in ("first", "second")}

    def block(name: str) -> None:
        with one_thread():
            found[name] = n_threads()
            entered[name].set()
            leave[name].wait(10)

    with fresh_setting(2):
        threads = {name: threading.Thread(target=block, args=[name]) for name in entered}
        for name, thread in threads.items():
            thread.start()
            assert entered[name].wait(10)
        assert found == {"first": {1}, "second": {1}}
        for name, thread in threads.items():
            leave[name].set()
            thread.join(10)
        assert n_threads() == {2}


@contextmanager
def fresh_setting(n: int) -> Iterator[None]:
    """n threads, set by a Python thread that has ended: threadpoolctl lets one living thread at a time set them."""

    def set_threads(number: int) -> None:
        def work() -> None:
            for library in ThreadpoolController().select(user_api="blas").lib_controllers:
                library.set_num_threads(number)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(10)

    (before,) = n_threads()
    set_threads(n)
    yield
    set_threads(before)


@LIMITED
def test_nested_blocks_and_errors_restore_what_was_there() -> None:
    @one_thread()
    def fails() -> None:
        assert n_threads() == {1}
        raise KeyError

    with one_thread():
        with pytest.raises(KeyError):
            fails()
        assert n_threads() == {1}
    assert n_threads() == {2}
