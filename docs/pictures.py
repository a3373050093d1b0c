"""Write the pictures of the README, docs/images/*.svg: a sentence under `trans,inv` and one under `syn:fr`.

python docs/pictures.py
"""

from __future__ import annotations

from pathlib import Path

from derivlang import derive
from derivlang.display.page import standalone_svg

PICTURES = {
    "trans-inv": ("Welcome to ACL .", "trans,inv"),
    "syn-fr": ("She bought the old red car yesterday .", "syn:fr"),
}
FOLDER = Path(__file__).parent / "images"


def main() -> None:
    """Write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, (text, spec) in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(standalone_svg(derive(text.split(), spec).linked()), "utf-8")


if __name__ == "__main__":
    main()
