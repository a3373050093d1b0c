"""View: rows that a notebook shows as a drawing, and that can be saved as a page or as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from derivlang.core.errors import UsageError
from derivlang.core.messages import counted
from derivlang.display.drawing import colours_of
from derivlang.display.linked import LinkedLines
from derivlang.display.terminal import Paint, text_of
from derivlang.formats.places import located
from derivlang.store.files import held_file, writing


@dataclass(frozen=True, slots=True)
class View:
    """One or several rows. A notebook shows them as a drawing; `print` writes them as `derivlang show` does."""

    rows: Sequence[LinkedLines]
    title: str = "derivlang"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"View of {counted(len(self.rows), 'row')}; .save('FILE.html') writes it"

    def _repr_html_(self) -> str:
        from derivlang.display.page import fragment

        return fragment(self.rows)

    def text(self, paint: Paint = lambda text, kind: text) -> str:
        """Return the rows as a terminal shows them. paint: colours a piece of text."""
        colours = colours_of(self.rows)
        return "\n\n".join(text_of(row, paint, colours) for row in self.rows)

    def save(self, file: Path | str, told: str = "", *, force: bool = False) -> None:
        """Write the rows as a page, or the first row as a picture if the file ends in .svg.

        told: a sentence to show below the page's title. force: replace a file that holds something else. Raises
        StoreError if the file cannot be written, or may not be replaced, UsageError if there is no row.
        """
        from derivlang.display.page import page, standalone_svg

        path = located(file)
        if not self.rows:
            raise UsageError("there is no row to draw", where=str(path), id="no-row")
        text = standalone_svg(self.rows[0]) if path.suffix.lower() == ".svg" else page(self.rows, self.title, told)
        with held_file(path, "a drawing", text), writing(path, replace=force) as stream:
            stream.write(text.encode())
