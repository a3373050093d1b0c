"""Scripts: each is held to its rule over all 1,114,112 code points, and its table is pinned."""

import functools
import hashlib
import pickle
import re
import string
import unicodedata
from importlib import resources

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.normalizers import BertNormalizer

from derivlang.transforms.scripts import (
    CLONES,
    Script,
    is_script,
    load_script,
    offset_name,
    parse_script,
    script_names,
)

NAMES = ["armenian", "copy", "cyrillic", "georgian", "greek", "private"]
VISIBLE = [
    "armenian",
    "copy",
    "cyrillic",
    "georgian",
    "greek",
]  # letters and digits have visible counterparts
PUNCTUATED = ["armenian", "cyrillic", "georgian", "greek"]  # and punctuation marks, too
TABLES = [(name, version) for name in NAMES for version in ((1, 2) if name in PUNCTUATED else (1,))]
# Accented letters: French, German, Spanish, Portuguese, Italian, Dutch, Nordic; Polish, Czech, Slovak, Hungarian,
# Romanian, Turkish, Croatian; Latvian, Lithuanian, Estonian; Welsh
EUROPE = (
    "àâæçéèêëîïôœùûüÿ äöüß áéíñóúü ãõâêô àèéìòù åäöæøðþýáéíóú ąćęłńóśźż áčďéěíňóřšťúůýž äĺľŕô áéíóöőúüű "
    "ăâîșțşţ çğöşüâîû čćđšž āčēģīķļņšūž ąčęėįšųūž äõöüšž ŵŷ"
).replace(" ", "")

ALL = np.arange(0x110000, dtype=np.uint32)
ALL.setflags(write=False)
LETTERS_DIGITS = string.ascii_letters + string.digits

# Written out again from the methods page, not imported: the test must not share a slip with the package.
STAY = """0000-0020 007F-00A0 1680-1680 2000-200A 2028-2029 202F-202F 205F-205F 3000-3000 D800-DFFF FDD0-FDEF
20000-EFFFF"""

any_script = pytest.mark.parametrize("name", NAMES)
any_table = pytest.mark.parametrize(("name", "version"), TABLES)
visible_script = pytest.mark.parametrize("name", VISIBLE)


@functools.cache
def fixed_points() -> npt.NDArray[np.bool_]:
    """What every script stays off."""
    return fixed_by_the_rule([])


def fixed_by_the_rule(pairs: list[int]) -> npt.NDArray[np.bool_]:
    """bool[0x110000]: what a script stays off, if its table has these code points."""
    stays = (ALL & 0xFFFF) >= 0xFFFE  # the last two code points of every plane
    for item in STAY.split():
        first, last = (int(end, 16) for end in item.split("-"))
        stays[first : last + 1] = True
    # Private use without a partner: the one that would come to p is fixed, or has its partner in the table.
    stays[0xF0000:0x100000] |= stays[0x0000:0x10000]
    stays[0x100000:0x110000] |= stays[0x10000:0x20000]
    for codepoint in pairs:
        assert not stays[codepoint]
        stays[0xF0000 + codepoint] = True
    return stays


def listed(script: Script) -> list[int]:
    """The code points in a script's own file, by what the table does with planes 0 and 1."""
    low = script.table[:0x20000]
    return [int(c) for c in np.flatnonzero((low != ALL[:0x20000]) & (low < 0x20000))]


def test_names_are_the_table_files_and_private() -> None:
    assert list(script_names()) == NAMES


@any_table
def test_involution_over_all_code_points(name: str, version: int) -> None:
    script = load_script(name, version)
    assert (script.name, script.version) == (name, version)
    assert script.table.dtype == np.uint32
    image = script.map_codepoints(ALL)
    assert np.array_equal(script.map_codepoints(image), ALL)
    assert np.bincount(image, minlength=0x110000).max() == 1  # no image twice


@any_table
def test_fixed_points_are_those_listed_and_no_others(name: str, version: int) -> None:
    script = load_script(name, version)
    assert np.array_equal(script.table == ALL, fixed_by_the_rule(listed(script)))


@any_table
def test_what_is_in_no_table_swaps_with_private_use(name: str, version: int) -> None:
    script = load_script(name, version)
    table = script.table
    in_table = np.zeros(0x110000, dtype=np.bool_)
    in_table[listed(script)] = True
    moved = (table != ALL) & ~in_table
    bmp, plane_1 = ALL[:0x10000][moved[:0x10000]], ALL[0x10000:0x20000][moved[0x10000:0x20000]]
    assert np.array_equal(table[bmp], 0xF0000 + bmp)
    assert np.array_equal(table[plane_1], 0x100000 + (plane_1 - 0x10000))
    assert {0x00AD, 0x0301, 0x200B, 0x200D, 0xE000, 0xF8FF, 0xFEFF, 0xFFFD} <= set(bmp.tolist())
    assert {0x1F600, 0x1FBFA} <= set(plane_1.tolist())


OFFSETS = ["offset=131072", "offset=200000", "offset=262144", "offset=786431", "offset=786432"]
any_offset = pytest.mark.parametrize("name", OFFSETS)


@any_offset
def test_an_offset_swaps_planes_0_and_1_with_the_code_points_above(name: str) -> None:
    """What stays below is white space, controls, surrogates, noncharacters, and what would become a noncharacter."""
    n = int(name.removeprefix("offset="))
    table = load_script(name).table
    stays = fixed_points()[:0x20000] | (((ALL[:0x20000] + n) & 0xFFFF) >= 0xFFFE)
    expected = ALL.copy()
    moved = ALL[:0x20000][~stays]
    expected[moved], expected[moved + n] = moved + n, moved
    assert np.array_equal(table, expected)
    assert np.array_equal(table[table], ALL)
    assert not any(chr(c).isspace() for c in table[moved])


def test_the_fake_english_of_k_et_al() -> None:
    """Their code point is c + 200,000. Four code points of planes 0 and 1 stay only under this offset."""
    script = load_script("offset=200000")
    assert script.map_text("a") == "\U00030da1"
    same = script.table[:0x20000] == ALL[:0x20000] + 200_000
    assert np.flatnonzero(~same & ~fixed_points()[:0x20000]).tolist() == [0xF2BE, 0xF2BF, 0x1F2BE, 0x1F2BF]
    assert script.map_text("The lake .") == "".join(c if c == " " else chr(ord(c) + 200_000) for c in "The lake .")


def test_clones_share_nothing_with_each_other_or_the_source() -> None:
    low = ALL[:0x20000]
    images = [table[table != low] for table in (load_script(offset_name(n)).table[:0x20000] for n in CLONES)]
    everything = np.concatenate([low, *images])
    assert len(np.unique(everything)) == len(everything)
    assert len(CLONES) == 6
    planes = [set((image >> 16).tolist()) for image in images]
    assert planes == [{4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {15, 16}]
    categories = [{unicodedata.category(chr(c)) for c in image} for image in images]
    assert categories == [{"Cn"}] * 5 + [{"Co"}]


@given(st.text(st.characters(max_codepoint=0x1FFFF)))
def test_clones_of_a_text_are_pairwise_disjoint(text: str) -> None:
    moved = [c for c in text if not fixed_points()[ord(c)]]
    languages = [set(moved), *(set(load_script(offset_name(n)).map_text("".join(moved))) for n in CLONES)]
    assert len(set().union(*languages)) == 7 * len(set(moved))


@pytest.mark.parametrize("offset", [0, 5, 131_071, 786_433, 983_039, 983_041, 1_114_111])
def test_an_offset_that_leaves_no_planes_to_itself(offset: int) -> None:
    with pytest.raises(ValueError, match="from 131072 to 786432, or 983040"):
        offset_name(offset)
    with pytest.raises(KeyError):
        load_script(f"offset={offset}")


@pytest.mark.parametrize("name", ["offset=983040", "offset=0200000", "offset=٢٠٠٠٠٠", "offset=", "Offset=200000"])
def test_a_script_has_one_name(name: str) -> None:
    with pytest.raises(KeyError):
        load_script(name)
    assert not is_script(name)
    assert offset_name(983_040) == "private"


def test_an_offset_is_pickled_by_its_name() -> None:
    pickled = pickle.dumps(load_script("offset=200000"))
    assert len(pickled) < 200
    assert pickle.loads(pickled).map_text("a") == "\U00030da1"
    with pytest.raises(KeyError, match="2"):
        load_script("offset=200000", 2)


def test_private_moves_the_whole_bmp_to_plane_15() -> None:
    script = load_script("private")
    assert not listed(script)
    moves = ~fixed_by_the_rule([])[:0x10000]
    assert np.array_equal(script.table[:0x10000][moves], 0xF0000 + ALL[:0x10000][moves])


@visible_script
def test_letters_and_digits_are_62_distinct_visible_characters(name: str) -> None:
    image = load_script(name).map_text(LETTERS_DIGITS)
    assert len(set(image)) == 62
    assert not image.isascii()
    assert all(ord(c) > 0x7F and c.isprintable() and not 0xE000 <= ord(c) <= 0xFAFF for c in image)
    assert load_script(name).map_text(string.digits).isdecimal()
    assert len(listed(load_script(name, 1))) // 2 == (94 if name in PUNCTUATED else 62)


@visible_script
def test_table_survives_accent_stripping_and_canonical_normalisers(name: str) -> None:
    image = load_script(name).map_text(string.ascii_letters + string.digits + string.punctuation)
    assert unicodedata.normalize("NFD", image) == unicodedata.normalize("NFC", image) == image


@pytest.mark.parametrize("name", PUNCTUATED)
def test_capitals_are_the_capitals_of_the_small_letters(name: str) -> None:
    script = load_script(name)
    for letter in string.ascii_lowercase:
        assert script.map_text(letter).upper() == script.map_text(letter.upper())
        assert script.map_text(letter.upper()).lower() == script.map_text(letter)


@pytest.mark.parametrize("name", PUNCTUATED)
def test_punctuation_goes_to_fullwidth(name: str) -> None:
    fullwidth = "".join(chr(ord(c) - 0x21 + 0xFF01) for c in string.punctuation)
    assert load_script(name).map_text(string.punctuation) == fullwidth
    assert load_script(name).map_text("., #") == "．， ＃"


@any_table
def test_images_of_characters_are_characters(name: str, version: int) -> None:
    script = load_script(name, version)
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    image = script.map_text(text)
    image.encode("utf-8")  # raises for a surrogate
    assert script.map_text(image) == text


@any_script
@pytest.mark.parametrize(
    "text",
    [
        "",
        "Welcome to ACL .",
        "naïve café №7, “don’t”!",
        "Добро გამარჯობა ἀρχή Բարեւ",
        "👩‍👧 مرحبا हिन्दी",
        "\U000f0041\ue000",
    ],
)
def test_map_text_twice_is_the_text(name: str, text: str) -> None:
    script = load_script(name)
    image = script.map_text(text)
    assert len(image) == len(text)
    assert script.map_text(image) == text


@any_script
@given(st.text(st.characters()))  # lone surrogates too
def test_map_text_is_an_involution(name: str, text: str) -> None:
    script = load_script(name)
    assert script.map_text(script.map_text(text)) == text


@any_table
def test_white_space_stays_and_nothing_becomes_white_space(name: str, version: int) -> None:
    script = load_script(name, version)
    assert script.map_text(string.whitespace) == string.whitespace
    spaces = "".join(chr(c) for c in range(0x110000) if chr(c).isspace())
    assert script.map_text(spaces) == spaces  # so no script makes or unmakes a word boundary


@any_script
def test_input_is_untouched_and_shape_kept(name: str) -> None:
    codepoints = np.array([[0x41, 0x20], [0x10D0, 0x1F600]], dtype=np.uint32)
    before = codepoints.copy()
    codepoints.setflags(write=False)
    image = load_script(name).map_codepoints(codepoints)
    assert image.dtype == np.uint32
    assert image.shape == (2, 2)
    assert np.array_equal(codepoints, before)
    image[0, 0] = 0  # the caller's own: the table must not change under it
    assert np.array_equal(load_script(name).map_codepoints(load_script(name).map_codepoints(before)), before)


@any_script
def test_table_is_read_only(name: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        load_script(name).table[0x41] = 0


# Checked letter by letter against their Unicode names, and digit by digit.
@pytest.mark.parametrize(
    ("name", "text", "image"),
    [
        ("georgian", "Welcome to ACL .", "Წელცომე ტო ᲐᲪᲚ ．"),
        ("georgian", "2024", "၂၀၂၄"),
        ("cyrillic", "Welcome to ACL .", "Шелцоме то АЦЛ ．"),
        ("cyrillic", "2024", "२०२४"),
        ("greek", "Welcome to ACL .", "Ωελξομε το ΑΞΛ ．"),
        ("greek", "2024", "២០២៤"),
        ("armenian", "Welcome to ACL .", "Ւելցօմե տօ ԱՑԼ ．"),
        ("armenian", "2024", "໒໐໒໔"),
        ("copy", "Welcome to ACL .", "𝕎𝕖𝕝𝕔𝕠𝕞𝕖 𝕥𝕠 𝔸ℂ𝕃 \U000f002e"),
        ("copy", "CHNPQRZ 2024", "ℂℍℕℙℚℝℤ 𝟚𝟘𝟚𝟜"),
        ("private", "We .", "\U000f0057\U000f0065 \U000f002e"),
        # A pair swaps; what is in none goes to private use.
        ("georgian", "ა ʘ 😀", "a \U000f0298 \U0010f600"),
        ("georgian", "Café", "Ცაფⴄ"),
        ("greek", "Café", "Ξαφέ"),
        ("cyrillic", "Café", "Цафэ"),
        ("armenian", "Café", "Ցաֆէ"),
        ("georgian", "STRAẞE, Straße", "ᲡᲢᲠᲐႮᲔ， Სტრაⴎე"),
    ],
)
def test_golden_words(name: str, text: str, image: str) -> None:
    assert load_script(name).map_text(text) == image


# A table that was published never changes: a new one is added to its file (`# table 3`) and pinned here.
@pytest.mark.parametrize(
    ("name", "version", "digest"),
    [
        ("armenian", 1, "36a18d677593"),
        ("copy", 1, "34919dfde44c"),
        ("cyrillic", 1, "d1c013987a41"),
        ("georgian", 1, "22ea06f707d8"),
        ("greek", 1, "5985be48f45d"),
        ("private", 1, "33f5008fc8ff"),
        ("armenian", 2, "58b4fe091a00"),
        ("cyrillic", 2, "5a1b3960d58a"),
        ("georgian", 2, "89f466a4e5e7"),
        ("greek", 2, "729377977234"),
    ],
)
def test_tables_are_pinned(name: str, version: int, digest: str) -> None:
    assert hashlib.sha256(load_script(name, version).table.astype("<u4").tobytes()).hexdigest()[:12] == digest


def test_every_table_is_tested() -> None:
    newest = {name: load_script(name).version for name in NAMES}
    assert [(name, v) for name in NAMES for v in range(1, newest[name] + 1)] == TABLES


@pytest.mark.parametrize("name", PUNCTUATED)
def test_a_newer_table_only_adds(name: str) -> None:
    old, new = load_script(name, 1).table, load_script(name, 2).table
    swapped = listed(load_script(name, 1))
    assert np.array_equal(old[swapped], new[swapped])
    assert np.array_equal(old[:0x80], new[:0x80])


def added(name: str) -> dict[str, str]:
    """What table 2 adds, Latin letters and punctuation to their images."""
    first, second = load_script(name, 1), load_script(name, 2)
    return {
        c: second.map_text(c)
        for c in map(chr, sorted(set(listed(second)) - set(listed(first))))
        if unicodedata.name(c).startswith("LATIN") or (unicodedata.category(c)[0] in "PSN" and ord(c) < 0x20B0)
    }


@pytest.mark.parametrize("name", ["cyrillic", "georgian", "greek"])
def test_letters_of_europe_are_visible_in_both_cases(name: str) -> None:
    text = EUROPE + EUROPE.replace("ß", "ẞ").upper() + "ıİ"
    assert set(text) <= set(added(name))


@pytest.mark.parametrize("name", PUNCTUATED)
def test_added_letters_keep_their_case_pairs(name: str) -> None:
    """Pairs go to pairs, and `lower()` makes two images equal only where it makes the letters equal."""
    image = added(name)
    letters = [c for c in image if c.isalpha()]
    for c in letters:
        small, capital = c.lower(), "ẞ" if c == "ß" else c.upper()
        if c in "ıİ":  # their other cases are i and I with a dot, and dotted letters are other letters
            assert image[c].swapcase() not in image.values()
        else:
            assert image[small].upper() == image[capital]
            assert image[capital].lower() == image[small]
    everything = load_script(name).map_text(string.ascii_letters) + "".join(image.values())
    sources = string.ascii_letters + "".join(image)
    lowered: dict[str, str] = {}
    for c, mapped in zip(sources, everything, strict=True):
        assert lowered.setdefault(mapped.lower(), c.lower()) == c.lower()


@pytest.mark.parametrize("name", PUNCTUATED)
def test_added_images_are_visible_and_normalised_already(name: str) -> None:
    """No normaliser merges two images; one that strips accents merges what it merges in the source, at most."""
    script = load_script(name)
    for c, mapped in added(name).items():
        assert unicodedata.category(mapped)[0] in "LPS"  # visible, and no mark that joins the letter before
        assert ord(mapped) < 0xE000 or mapped == "￡"  # no private use
        assert unicodedata.normalize("NFC", mapped) == mapped
        assert unicodedata.normalize("NFKC", mapped) == mapped or c == "£"  # fullwidth, as ASCII punctuation
        bare = unicodedata.normalize("NFD", mapped)
        if len(bare) > 1:
            assert bare[0] == script.map_text(unicodedata.normalize("NFD", c)[0])


@pytest.mark.parametrize("version", [3, 7])
def test_a_table_that_is_not_there_is_a_key_error(version: int) -> None:
    with pytest.raises(KeyError, match=str(version)):
        load_script("georgian", version)


def test_unknown_script_is_a_key_error() -> None:
    for name in ("klingon", "", "../scripts/greek", "greek.tsv"):
        with pytest.raises(KeyError) as caught:
            load_script(name)
        assert caught.value.args == (name,)


def test_loading_is_cached() -> None:
    assert load_script("greek") is load_script("greek")


def test_parse_script_reads_the_tables_of_a_file() -> None:
    text = "# mine\na\tא\n# table 2: more\nb\tב\n"
    one, two = (parse_script(text, name="mine", version=v) for v in (1, 2))
    assert (len(listed(one)) // 2, len(listed(two)) // 2) == (1, 2)
    assert parse_script(text, name="mine").version == 2


def test_parse_script_reads_comments_escapes_and_empty_lines() -> None:
    script = parse_script("# two pairs\n\n# more\nU+0023\t♯\na\tU+1D552\n", name="mine")
    assert (script.name, script.description, len(listed(script)) // 2) == ("mine", "two pairs", 2)
    assert script.map_text("a# b") == "𝕒♯ \U000f0062"
    assert np.array_equal(script.table[script.table], ALL)
    assert np.array_equal(script.table == ALL, fixed_by_the_rule([0x23, 0x266F, 0x61, 0x1D552]))


@pytest.mark.parametrize("name", [name for name in script_names() if name != "private"])
def test_lines_of_table_files_are_pairs(name: str) -> None:
    text = resources.files("derivlang.transforms.scripts").joinpath(f"{name}.tsv").read_text("utf-8")
    first, *lines = text.split("\n")
    assert first.startswith("# ")
    tables = [line for line in lines if re.match("# *table", line)]
    assert all(line.startswith(f"# table {number}:") for number, line in enumerate(tables, 2))
    cells = [cell for line in lines if line and not re.match("#($| )", line) for cell in line.split("\t")]
    assert len(cells) == 2 * sum(bool(line) and not re.match("#($| )", line) for line in lines)
    assert all(re.fullmatch(r"U\+[0-9A-F]{4,6}|[^#]", cell) for cell in cells)
    points = [int(cell[2:], 16) if len(cell) > 1 else ord(cell) for cell in cells]
    assert len(set(points)) == len(points)
    assert max(points) < 0x20000
    assert not fixed_by_the_rule([])[points].any()


@pytest.mark.parametrize(
    ("name", "category", "stays"),
    [
        ("offset=200000", "Lo", True),
        ("offset=262144", "Cn", True),
        ("offset=786432", "Cn", True),
        ("private", "Co", False),
    ],
)
def test_what_other_programs_make_of_the_images(name: str, category: str, stays: bool) -> None:
    """The table of docs/reference/scripts.md: letters or not, normal forms, and what BERT's normaliser deletes."""
    image = load_script(name).map_text("Welcome to ACL")
    assert {unicodedata.category(letter) for letter in image.replace(" ", "")} == {category}
    assert image.replace(" ", "").isalpha() == (category == "Lo")
    assert all(unicodedata.normalize(form, image) == image for form in ("NFC", "NFKC"))
    kept = BertNormalizer(lowercase=True).normalize_str(image)
    assert kept.split() == (image.split() if stays else [])
