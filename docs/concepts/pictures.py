"""Draw the pictures of docs/concepts from what derivlang prints: python docs/concepts/pictures.py"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path

import derivlang
from derivlang.display.page import faces
from derivlang.lexical.settings import TokenizerOptions
from derivlang.lexical.train import train
from derivlang.lexical.twin import make_twin
from derivlang.sources.request import SourceRequest

HERE = Path(__file__).parent
OUT = HERE / "pictures"
SENTENCE = "The old captain sold his blue boat to a young fisherman."
GREY, BLUE, ORANGE, GREEN = "#767676", "#0072B2", "#B34700", "#00735C"  # apart for the colour-blind, dark on white
FONT = "derivlang,'Noto Sans','DejaVu Sans',sans-serif"


def main() -> None:
    OUT.mkdir(exist_ok=True)
    panels = [("trans", "another lexicon, the same order"), ("inv", "another order, the same lexicon")]
    write("order-and-lexicon", links([*panels, ("trans,inv", "both")], "Mara lives in Saltmere"))
    orders = [
        ("inv", "reversed"),
        ("perm", "random"),
        ("perm:window=3", "random, near its place"),
        ("syn:fr", "French"),
    ]
    write("orders", links(orders, SENTENCE))
    write("twins", twins("The ferry to Saltmere is late"))
    write("transfer", transfer())
    write("intervals", intervals())


def write(name: str, drawing: tuple[float, float, str, str]) -> None:
    """Write NAME.svg. drawing: width, height, description and elements."""
    width, height, title, body = drawing
    letters = f"<style>{fonts}</style>\n" if (fonts := faces(body)) else ""
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'font-family="{FONT}" font-size="15" role="img">\n<title>{escape(title)}</title>\n{letters}'
        f'<rect width="100%" height="100%" rx="8" fill="white"/>\n{body}</svg>\n'
    )
    (OUT / f"{name}.svg").write_text(text, "utf-8")


def label(x: float, y: float, text: str, colour: str = "#222", **attributes: object) -> str:
    extra = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}"{extra}>{escape(text)}</text>\n'


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1.5) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}" '
        'stroke-linecap="round"/>\n'
    )


def centres(words: Sequence[str], start: float) -> list[float]:
    """Return the middle of each word in a line of words, by an estimate of their widths."""
    found, x = [], start
    for word in words:
        width = 9.2 * len(word) + 16
        found.append(x + width / 2)
        x += width
    return found


def links(panels: list[tuple[str, str]], sentence: str) -> tuple[float, float, str, str]:
    """Draw each spec as two lines of words with a line between a word and its source; moved words are blue."""
    body, y, right, left = "", 16.0, 0.0, 20.0
    for spec, title in panels:
        found = derivlang.derive(sentence, spec)
        above, below = centres(found.source, left), centres(found.words, left)
        body += label(left + 6, y + 12, spec, font_family="monospace", font_weight="bold")
        body += label(left + 22 + 9.2 * len(spec), y + 12, title, GREY)
        for place, source in enumerate(found.order):
            colour = GREY if source == place else BLUE
            body += line(above[source], y + 46, below[place], y + 90, colour)
        for words, x, height in ((found.source, above, y + 40), (found.words, below, y + 106)):
            body += "".join(label(at, height, word, text_anchor="middle") for word, at in zip(words, x, strict=True))
        right = max(right, above[-1], below[-1], left + 22 + 9.2 * len(spec) + 8 * len(title))
        y += 134
    return (
        right + 40,
        y,
        f"Words of a sentence linked to their derived words under {', '.join(s for s, _ in panels)}",
        body,
    )


def twins(sentence: str) -> tuple[float, float, str, str]:
    """Draw the sub-words of a sentence and of its derived form, with the ids that both have."""
    with tempfile.TemporaryDirectory() as folder:
        source, twin = Path(folder, "source"), Path(folder, "twin")
        train(SourceRequest("demo"), source, TokenizerOptions(vocab_size=300, min_frequency=1))
        make_twin(source, "trans", twin)
        from transformers import AutoTokenizer

        readers = [AutoTokenizer.from_pretrained(place) for place in (source, twin)]
    texts = sentence, derivlang.derive(sentence.split(), "trans").text
    pieces = [
        [piece.replace("</w>", "") for piece in one.tokenize(text)] for one, text in zip(readers, texts, strict=True)
    ]
    ids, same = (one.encode(text, add_special_tokens=False) for one, text in zip(readers, texts, strict=True))
    assert ids == same
    body, left = "", 130.0
    x = centres([max(parts, key=len) for parts in zip(*pieces, map(str, ids), strict=True)], left)
    rows = [
        ("source", pieces[0], 34.0, "#222"),
        ("id in both", [str(i) for i in ids], 74.0, BLUE),
        ("derived", pieces[1], 114.0, "#222"),
    ]
    for name, words, y, colour in rows:
        body += label(16, y, name, GREY)
        body += "".join(label(at, y, word, colour, text_anchor="middle") for word, at in zip(words, x, strict=True))
    body += "".join(line(at, 42, at, 56, GREY) + line(at, 82, at, 96, GREY) for at in x)
    return x[-1] + 40, 132, "Sub-words of a sentence and of its derived form have the same ids", body


def published(start: str) -> list[str]:
    """Return the cells of a row in the tables of the study with five seeds."""
    page = (HERE.parent / "studies" / "align-mlm.md").read_text("utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| {start} |"))
    return [cell.strip() for cell in row.strip("| ").split("|")]


def numbers(text: str) -> list[float]:
    return [float(found.replace("−", "-")) for found in re.findall(r"[−+-]?\d+\.\d+", text)]


def transfer() -> tuple[float, float, str, str]:
    """Draw SUP, ZS and their gap for two objectives, means of five seeds."""
    body, left, scale, y = "", 120.0, 5.0, 20.0
    for name in ("mlm", "align-mlm"):
        cells = published(name)
        sup, zs = numbers(cells[3])[0], numbers(cells[4])[0]
        body += label(16, y + 30, name, font_weight="bold")
        for offset, value, colour, what in ((0, sup, BLUE, "SUP"), (26, zs, ORANGE, "ZS")):
            body += f'<rect x="{left}" y="{y + offset:.1f}" width="{value * scale:.1f}" height="20" fill="{colour}"/>\n'
            body += label(left + 8, y + offset + 15, f"{what} {value}", "white", font_weight="bold")
        body += line(left + zs * scale + 4, y + 36, left + sup * scale, y + 36, "#222")
        body += label(left + (zs + sup) / 2 * scale, y + 54, f"Δ {sup - zs:.1f}", text_anchor="middle")
        y += 84
    return left + 86 * scale, y - 10, "Bars of SUP and ZS with the gap between them, for two objectives", body


def intervals() -> tuple[float, float, str, str]:
    """Draw differences from MLM by seed, with their mean and its interval."""
    body, middle, scale, y = "", 300.0, 11.0, 46.0
    body += line(middle, 26, middle, 196, GREY) + label(middle, 20, "no difference", GREY, text_anchor="middle")
    for name in ("align-mlm − mlm", "dict-mlm:among=all − mlm", "xlm − mlm"):
        cells = published(name)
        mean, low, high = numbers(cells[1])
        colour = GREEN if low > 0 or high < 0 else ORANGE
        body += label(16, y + 5, name.replace(":among=all", ""))
        body += line(middle + low * scale, y, middle + high * scale, y, colour, 4)
        body += f'<circle cx="{middle + mean * scale:.1f}" cy="{y}" r="6" fill="{colour}"/>\n'
        for value in numbers(cells[3]):
            x = middle + value * scale
            body += f'<circle cx="{x:.1f}" cy="{y + 18:.1f}" r="4" fill="none" stroke="{colour}" stroke-width="1.5"/>\n'
        y += 50
    body += "".join(
        label(middle + at * scale, 214, f"{at:+d}" if at else "0", GREY, text_anchor="middle")
        for at in (-10, 0, 10, 20)
    )
    return middle + 25 * scale, 226, "Differences from MLM by seed, with their means and intervals", body


if __name__ == "__main__":
    main()
