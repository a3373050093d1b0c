"""A progress bar for each stage of a block's work (`formats/progress.py`), on a terminal or in a notebook."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self

from derivlang.formats.progress import Reader, Unit, progress_to, shown_by


class ProgressBar(Reader):
    """A progress bar for each stage of the block's work.

    A bar is shown after half a second, so that short stages show none. shown: whether there are bars; None: on a
    terminal and in a notebook. current: the bar of the running stage, one of tqdm.
    """

    def __init__(self, *, shown: bool | None = None) -> None:
        self.current: Any = None
        self._context = ExitStack()
        self.shown = sys.stderr.isatty() or _in_notebook() if shown is None else shown

    def __enter__(self) -> Self:
        self._context.enter_context(shown_by(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        self._context.close()

    @contextmanager
    def stage(self, what: str, unit: Unit | None = "bytes", total: int | None = None) -> Iterator[None]:
        """Show a bar that follows the work of the block; unit None: the name and the elapsed time.

        total: None if unknown. A stage within another one takes its place.
        """
        self._close()
        self.current = self._new(what, unit, total)
        with ExitStack() as context:
            context.callback(self._close)
            if unit is None and self.current is not None:
                context.enter_context(ticking(self.current))
            context.enter_context(progress_to(self._step, unit))
            yield

    def note(self, **shown: str) -> None:
        """Set what stands after the bar."""
        if self.current is not None:
            self.current.set_postfix(shown, refresh=False)

    def tell(self, line: str) -> None:
        """Show a line after the bar."""
        self.current = self.current or self._new("working", None, None)
        self.note(now=line)

    def _new(self, what: str, unit: str | None, total: int | None) -> Any:
        if not self.shown:
            return None
        if _in_notebook() and find_spec("ipywidgets"):
            from tqdm.notebook import tqdm
        else:
            from tqdm import tqdm

        return tqdm(
            total=total or None,
            desc=what,
            unit="B" if unit == "bytes" else f" {unit}",
            unit_scale=unit != "steps",
            bar_format=None if unit else "{desc} [{elapsed}]",
            file=sys.stderr,
            delay=0.5,
            leave=False,
            dynamic_ncols=True,
        )

    def _step(self, n: int) -> None:
        if self.current is not None:
            if self.current.total and self.current.n + n > self.current.total:  # an estimate that was too low
                self.current.total = None
            self.current.update(n)

    def _close(self) -> None:
        if self.current is not None:
            self.current.close()
            self.current = None


@contextmanager
def ticking(bar: Any) -> Iterator[None]:
    """Draw a bar of tqdm again every half second: tqdm draws only when progress is reported to it."""
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(0.5):
            bar.update(0)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _in_notebook() -> bool:
    """Return whether the code runs in a kernel of Jupyter."""
    return "ipykernel" in sys.modules
