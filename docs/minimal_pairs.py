"""Write the minimal pairs of `--task blimp:demo`, `derivlang/sources/demo/demo-pairs.conllu`.

A word of a template is FORM/HEAD/RELATION, as in CoNLL-U: the/2/det dog/3/nsubj sleeps/0/root ./3/punct. A reading of a
form that has several follows a dot: `work.pl` is the plural present, `buy.inf` the infinitive. What follows a verb is a
template of its own, whose heads count from 1; there 0 is the verb.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

OUT = Path(__file__).parents[1] / "derivlang" / "sources" / "demo" / "demo-pairs.conllu"
N = 40  # pairs of a paradigm

NOUNS = """answer book boy brother car cat child:children city coffee company dog doctor door driver family father
fish food friend game girl group guard help hospital house idea job lawyer letter life man:men manager
meal meat member money mother movie museum music name officer owner parent park party:parties phone
picture place plan player problem question report restaurant room shirt sister song store story:stories
student teacher team time truck window woman:women work worker""".split()
VERBS = """agree:agrees:agreed:agreed appear:appears:appeared:appeared arrive:arrives:arrived:arrived
ask:asks:asked:asked be:is:was:been begin:begins:began:begun break:breaks:broke:broken
bring:brings:brought:brought buy:buys:bought:bought call:calls:called:called choose:chooses:chose:chosen
clean:cleans:cleaned:cleaned come:comes:came:come describe:describes:described:described
die:dies:died:died disappear:disappears:disappeared:disappeared discuss:discusses:discussed:discussed
do:does:did:done drink:drinks:drank:drunk drive:drives:drove:driven eat:eats:ate:eaten
enjoy:enjoys:enjoyed:enjoyed fall:falls:fell:fallen find:finds:found:found
forget:forgets:forgot:forgotten give:gives:gave:given go:goes:went:gone hear:hears:heard:heard
help:helps:helped:helped hope:hopes:hoped:hoped know:knows:knew:known laugh:laughs:laughed:laughed
leave:leaves:left:left like:likes:liked:liked live:lives:lived:lived lose:loses:lost:lost
love:loves:loved:loved make:makes:made:made meet:meets:met:met mention:mentions:mentioned:mentioned
need:needs:needed:needed own:owns:owned:owned play:plays:played:played put:puts:put:put
read:reads:read:read receive:receives:received:received remember:remembers:remembered:remembered
remain:remains:remained:remained say:says:said:said see:sees:saw:seen seem:seems:seemed:seemed
sell:sells:sold:sold sleep:sleeps:slept:slept speak:speaks:spoke:spoken steal:steals:stole:stolen
stay:stays:stayed:stayed take:takes:took:taken talk:talks:talked:talked tell:tells:told:told
think:thinks:thought:thought use:uses:used:used visit:visits:visited:visited wait:waits:waited:waited
want:wants:wanted:wanted watch:watches:watched:watched wear:wears:wore:worn
wonder:wonders:wondered:wondered work:works:worked:worked write:writes:wrote:written""".split()
ADJECTIVES = """American big black blue Chinese English famous French German good green happy Indian Italian Japanese
large little new old red small white young""".split()
# FORM or FORM.READING, lemma, tags, features. Most are spelled as in English-EWT.
OTHERS = """
a           a         DET   DT    Definite=Ind|PronType=Art
the         the       DET   DT    Definite=Def|PronType=Art
this        this      DET   DT    Number=Sing|PronType=Dem
these       this      DET   DT    Number=Plur|PronType=Dem
that        that      DET   DT    Number=Sing|PronType=Dem
no          no        DET   DT    PronType=Neg
any         any       DET   DT    PronType=Ind
some        some      DET   DT    PronType=Ind
which       which     DET   WDT   PronType=Int
my          my        PRON  PRP$  Case=Gen|Number=Sing|Person=1|Poss=Yes|PronType=Prs
she         she       PRON  PRP   Case=Nom|Gender=Fem|Number=Sing|Person=3|PronType=Prs
he          he        PRON  PRP   Case=Nom|Gender=Masc|Number=Sing|Person=3|PronType=Prs
they        they      PRON  PRP   Case=Nom|Number=Plur|Person=3|PronType=Prs
us          we        PRON  PRP   Case=Acc|Number=Plur|Person=1|PronType=Prs
herself     herself   PRON  PRP   Case=Acc|Gender=Fem|Number=Sing|Person=3|PronType=Prs|Reflex=Yes
himself     himself   PRON  PRP   Case=Acc|Gender=Masc|Number=Sing|Person=3|PronType=Prs|Reflex=Yes
themselves  themselves PRON PRP   Case=Acc|Number=Plur|Person=3|PronType=Prs|Reflex=Yes
nobody      nobody    PRON  NN    Number=Sing|PronType=Neg
somebody    somebody  PRON  NN    Number=Sing|PronType=Ind
what        what      PRON  WP    PronType=Int
who         who       PRON  WP    PronType=Int
that.rel    that      PRON  WDT   PronType=Rel
that.mark   that      SCONJ IN    _
whether     whether   SCONJ IN    _
and         and       CCONJ CC    _
about       about     ADP   IN    _
from        from      ADP   IN    _
in          in        ADP   IN    _
of          of        ADP   IN    _
to          to        ADP   IN    _
with        with      ADP   IN    _
has         have      AUX   VBZ   Mood=Ind|Number=Sing|Person=3|Tense=Pres|VerbForm=Fin
have        have      AUX   VBP   Mood=Ind|Number=Plur|Person=3|Tense=Pres|VerbForm=Fin
did         do        AUX   VBD   Mood=Ind|Number=Sing|Person=3|Tense=Past|VerbForm=Fin
did.pl      do        AUX   VBD   Mood=Ind|Number=Plur|Person=3|Tense=Past|VerbForm=Fin
more        more      ADJ   JJR   Degree=Cmp
very        very      ADV   RB    _
here        here      ADV   RB    PronType=Dem
again       again     ADV   RB    _
too         too       ADV   RB    _
ever        ever      ADV   RB    PronType=Ind
never       never     ADV   RB    Polarity=Neg
always      always    ADV   RB    _
.           .         PUNCT .     _
?           ?         PUNCT .     _
"""

Word = tuple[str, str, str, str]  # lemma, UPOS, XPOS, features
LEXICON: dict[str, Word] = {}
for line in OTHERS.strip().splitlines():
    form, lemma, upos, xpos, feats = line.split()
    LEXICON[form] = lemma, upos, xpos, feats
for adjective in ADJECTIVES:
    LEXICON[adjective] = adjective, "ADJ", "JJ", "Degree=Pos"
for noun in NOUNS:
    singular, _, plural = noun.partition(":")
    LEXICON[singular] = singular, "NOUN", "NN", "Number=Sing"
    LEXICON[plural or f"{singular}s"] = singular, "NOUN", "NNS", "Number=Plur"
for verb in VERBS:
    base, third, past, participle = verb.split(":")
    finite = "Mood=Ind|Number={}|Person=3|Tense={}|VerbForm=Fin"
    LEXICON[third] = base, "VERB", "VBZ", finite.format("Sing", "Pres")
    LEXICON[f"{base}.pl"] = base, "VERB", "VBP", finite.format("Plur", "Pres")
    LEXICON[f"{past}.past"] = base, "VERB", "VBD", finite.format("Sing", "Past")
    LEXICON[f"{past}.pasts"] = base, "VERB", "VBD", finite.format("Plur", "Past")
    LEXICON[f"{participle}.part"] = base, "VERB", "VBN", "Tense=Past|VerbForm=Part"
    LEXICON[f"{base}.inf"] = base, "VERB", "VB", "VerbForm=Inf"
THIRD = {verb.split(":")[0]: verb.split(":")[1] for verb in VERBS}
PLURAL = {noun.partition(":")[0]: noun.partition(":")[2] or f"{noun}s" for noun in NOUNS}

PEOPLE = "teacher student doctor manager lawyer driver woman man girl boy child officer".split()
PREDICATES = [
    ("work", "here/0/advmod"),
    ("live", "in/3/case this/3/det city/0/obl"),
    ("know", "the/2/det answer/0/obj"),
    ("need", "more/2/amod time/0/obj"),
    ("want", "a/3/det new/3/amod job/0/obj"),
    ("like", "this/2/det place/0/obj"),
    ("seem", "very/2/advmod happy/0/xcomp"),
    ("play", "music/0/obj"),
    ("use", "the/2/det phone/0/obj"),
    ("agree", "with/2/case us/0/obl"),
    ("talk", "about/2/case money/0/obl"),
]
Pair = tuple[str, str]


def ended(begin: str, verb: int, rest: str = "", stop: str = ".") -> str:
    """Return a template with what follows its verb, the word of this number, and the final mark."""
    n, words = len(begin.split()), []
    for word in rest.split():
        form, head, relation = word.split("/")
        words.append(f"{form}/{int(head) + n if int(head) else verb}/{relation}")
    return " ".join([begin, *words, f"{stop}/{verb}/punct"])


def both(verb: str, *, plural: bool) -> tuple[str, str]:
    """Return the present form that agrees with a subject, and the one that does not."""
    forms = THIRD[verb], f"{verb}.pl"
    return (forms[1], forms[0]) if plural else forms


def nth(items: list[str], number: int) -> str:
    return items[number % len(items)]


def simple_agreement() -> Iterator[Pair]:
    for i in range(N):
        verb, rest = PREDICATES[(i + i // 12) % len(PREDICATES)]
        plural = (i + i // 12) % 2 == 1
        noun = PLURAL[nth(PEOPLE, i)] if plural else nth(PEOPLE, i)
        good, bad = (f"the/2/det {noun}/3/nsubj {form}/0/root" for form in both(verb, plural=plural))
        yield ended(good, 3, rest), ended(bad, 3, rest)


def agreement_across_pp() -> Iterator[Pair]:
    subjects = [
        "friend of students", "owner of restaurants", "teacher of children", "manager of stores", "owner of cars",
        "brother of girls", "man with dogs", "friend of women", "doctors in hospital", "lawyers of company",
        "women with child", "parents of boy", "owners of restaurant", "members of team", "friends of officer",
        "students in room",
    ]  # fmt: skip
    for i in range(N):
        noun, preposition, other = nth(subjects, i).split()
        verb, rest = PREDICATES[(i + i // 16) % len(PREDICATES)]
        forms = both(verb, plural=LEXICON[noun][2] == "NNS")
        begin = f"the/2/det {noun}/6/nsubj {preposition}/5/case the/5/det {other}/2/nmod"
        good, bad = (f"{begin} {form}/0/root" for form in forms)
        yield ended(good, 6, rest), ended(bad, 6, rest)


def agreement_across_relative() -> Iterator[Pair]:
    inside = "know like love help remember".split()
    for i in range(N):
        verb, rest = PREDICATES[(3 * i + i // 11) % len(PREDICATES)]
        plural = (i + i // 12) % 2 == 1
        noun, other = nth(PEOPLE, i), nth(PEOPLE, i + 3 + i // 12)
        noun, other = (PLURAL[noun], other) if plural else (noun, PLURAL[other])
        (own, _), forms = both(nth(inside, i), plural=not plural), both(verb, plural=plural)
        begin = f"the/2/det {noun}/7/nsubj that.rel/6/obj the/5/det {other}/6/nsubj {own}/2/acl:relcl"
        good, bad = (f"{begin} {form}/0/root" for form in forms)
        yield ended(good, 7, rest), ended(bad, 7, rest)


def determiner_noun() -> Iterator[Pair]:
    liked = """book liked remembered bought found,picture liked remembered bought found,car liked saw bought found,
    house liked saw bought remembered,idea liked remembered heard discussed,place liked remembered visited found,
    story liked remembered heard read,letter read found received wrote,dog liked saw bought found,
    problem saw remembered discussed found,room liked saw remembered used,movie liked remembered saw discussed"""
    for i in range(N):
        noun, *verbs = nth(liked.replace("\n    ", "").split(","), i).split()
        subject, verb = nth(["she", "they", "he"], i + i // 3), nth(verbs, i // 12)
        forms = (noun, PLURAL[noun]) if (i + i // 12) % 2 else (PLURAL[noun], noun)
        word = f"{verb}.pasts" if subject == "they" else f"{verb}.past"
        determiner = "these" if LEXICON[forms[0]][2] == "NNS" else "this"
        good, bad = (f"{subject}/2/nsubj {word}/0/root {determiner}/4/det {form}/2/obj" for form in forms)
        yield ended(good, 2), ended(bad, 2)


WOMEN, MEN = "woman girl sister mother".split(), "man boy brother father".split()
REFLEXIVES = [
    ("helped", "{}/0/obj"),
    ("talked", "to/2/case {}/0/obl"),
    ("saw", "{}/0/obj in/4/case the/4/det picture/0/obl"),
    ("bought", "{}/0/iobj a/3/det book/0/obj"),
    ("asked", "{}/0/iobj a/3/det question/0/obj"),
    ("made", "{}/0/iobj some/3/det food/0/obj"),
    ("liked", "{}/0/obj"),
    ("described", "{}/0/obj"),
    ("told", "{}/0/iobj a/3/det story/0/obj"),
]


def of_whom(noun: str) -> str:
    """Return the determiner of a noun as a template: my sister, the woman."""
    return "my/2/nmod:poss" if noun in ("sister", "mother", "brother", "father") else "the/2/det"


def anaphor_number() -> Iterator[Pair]:
    for i in range(N):
        noun = nth(WOMEN + MEN, i)
        verb, rest = REFLEXIVES[(i + 2 * (i // 8)) % len(REFLEXIVES)]
        plural = (i + i // 8) % 2 == 1
        own = ("herself" if noun in WOMEN else "himself"), "themselves"
        begin = f"{of_whom(noun)} {PLURAL[noun] if plural else noun}/3/nsubj {verb}.past{'s' * plural}/0/root"
        good, bad = (ended(begin, 3, rest.format(form)) for form in (own[::-1] if plural else own))
        yield good, bad


def anaphor_gender() -> Iterator[Pair]:
    for i in range(N):
        noun = nth([name for both in zip(WOMEN, MEN, strict=True) for name in both], i)
        verb, rest = REFLEXIVES[(2 * i + i // 8) % len(REFLEXIVES)]
        own = ("herself", "himself") if noun in WOMEN else ("himself", "herself")
        begin = f"{of_whom(noun)} {noun}/3/nsubj {verb}.past/0/root"
        good, bad = (ended(begin, 3, rest.format(form)) for form in own)
        yield good, bad


def irregular_forms() -> Iterator[Pair]:
    rests = {
        "eat": "the/2/det fish/0/obj",
        "write": "a/2/det letter/0/obj",
        "take": "the/2/det money/0/obj",
        "break": "the/2/det window/0/obj",
        "drive": "the/2/det car/0/obj",
        "choose": "a/2/det name/0/obj",
        "speak": "to/3/case the/3/det manager/0/obl",
        "know": "the/2/det family/0/obj",
        "see": "the/2/det movie/0/obj",
        "go": "to/3/case the/3/det store/0/obl",
        "do": "the/2/det work/0/obj",
        "wear": "the/3/det red/3/amod shirt/0/obj",
        "steal": "the/2/det truck/0/obj",
        "begin": "a/3/det new/3/amod life/0/obj",
        "give": "us/0/iobj the/3/det book/0/obj",
    }
    forms = {verb.split(":")[0]: verb.split(":")[2:] for verb in VERBS}
    subjects = ["she/{}/nsubj", "he/{}/nsubj", "the/2/det man/{}/nsubj", "the/2/det girl/{}/nsubj"]
    for i in range(N):
        verb = nth(list(rests), i)
        past, participle = f"{forms[verb][0]}.past", f"{forms[verb][1]}.part"
        subject = nth(subjects, i + i // 15 + i // 30)
        at = len(subject.split()) + 1 + i % 2
        begin = subject.format(at) + f" has/{at}/aux" * (i % 2)
        own = (participle, past) if i % 2 else (past, participle)
        good, bad = (ended(f"{begin} {form}/0/root", at, rests[verb]) for form in own)
        yield good, bad


def transitive() -> Iterator[Pair]:
    takes = "found bought needed sold wanted lost used".split()
    takes_none = "arrived slept died disappeared fell stayed waited laughed".split()
    for i in range(N):
        noun, thing = nth(PEOPLE, i), nth(["money", "car", "book", "house", "phone"], i + i // 5)
        forms = nth(takes, i), nth(takes_none, i + i // 8)
        good, bad = (f"the/2/det {noun}/3/nsubj {form}.past/0/root the/5/det {thing}/3/obj" for form in forms)
        yield ended(good, 3), ended(bad, 3)


def intransitive() -> Iterator[Pair]:
    takes_none = "arrived slept disappeared laughed waited worked stayed".split()
    takes = "needed mentioned brought described owned liked made received put enjoyed".split()
    for i in range(N):
        noun, rest = nth(PEOPLE, i + i // 12), nth(["", "again/0/advmod", "too/0/advmod"], i // 4)
        forms = nth(takes_none, i), nth(takes, i)
        good, bad = (ended(f"the/2/det {noun}/3/nsubj {form}.past/0/root", 3, rest) for form in forms)
        yield good, bad


def npi_ever() -> Iterator[Pair]:
    things = [
        ("seen", "this/2/det movie/0/obj"),
        ("read", "the/2/det book/0/obj"),
        ("lived", "in/3/case this/3/det city/0/obl"),
        ("asked", "that/2/det question/0/obj"),
        ("heard", "the/2/det story/0/obj"),
        ("eaten", "here/0/advmod"),
        ("met", "the/2/det manager/0/obj"),
        ("worked", "with/2/case us/0/obl"),
        ("visited", "the/2/det museum/0/obj"),
        ("called", "us/0/obj"),
    ]
    for i in range(N):
        verb, rest = things[(i // 4 if i % 4 == 3 else i + i // 10) % len(things)]
        if i % 4 == 3:
            begins = [f"{one}/4/nsubj has/4/aux ever/4/advmod {verb}.part/0/root" for one in ("nobody", "somebody")]
            good, bad = (ended(begin, 4, rest) for begin in begins)
        else:
            noun = nth([name for name in PEOPLE if name != "manager"], i + i // 4 + i // 18)
            noun, aux = (PLURAL[noun], "have") if i % 2 else (noun, "has")
            own = f"2/det {noun}/5/nsubj {aux}/5/aux ever/5/advmod {verb}.part/0/root"
            good, bad = (ended(f"{one}/{own}", 5, rest) for one in ("no", "the"))
        yield good, bad


def npi_any() -> Iterator[Pair]:
    habits = """read books,eat meat,drink coffee,buy food,make friends,ask questions,tell stories,take pictures,
    need help,write letters"""
    subjects = ["she/{}/nsubj", "he/{}/nsubj", "the/2/det girl/{}/nsubj", "the/2/det boy/{}/nsubj"]
    for i in range(N):
        verb, thing = nth(habits.replace("\n    ", "").split(","), i).split()
        subject = nth(subjects, i // 10)
        at = len(subject.split()) + 2
        begins = [f"{subject.format(at)} {one}/{at}/advmod {THIRD[verb]}/0/root" for one in ("never", "always")]
        good, bad = (ended(begin, at, f"any/2/det {thing}/0/obj") for begin in begins)
        yield good, bad


ASKED = """read book,buy car,see movie,sell house,hear song,write letter,ask question,take picture,use phone,play game,
tell story,wear shirt,find dog,visit city""".replace("\n", "").split(",")
SUBJECTS = ["she", "he", "they", "the woman", "the students", "the man"]


def subject_of(number: int, verb: int) -> tuple[str, str]:
    """Return a subject as a template, and the form of `did` with it. verb: its number if the subject is one word."""
    words = nth(SUBJECTS, number).split()
    plural = words[-1] in ("they", "students")
    verb += len(words) - 1
    told = f"{words[-1]}/{verb}/nsubj"
    return (told if len(words) == 1 else f"the/{verb - 1}/det {told}"), "did.pl" if plural else "did"


def left_branch() -> Iterator[Pair]:
    for i in range(N):
        verb, thing = nth(ASKED, i).split()
        (whole, did), (split, _) = (subject_of(i + 2 * (i // 14), first) for first in (5, 4))
        at = 4 + len(whole.split())
        good = f"which/2/det {thing}/{at}/obj {did}/{at}/aux {whole} {verb}.inf/0/root"
        bad = f"which/{at + 1}/det {did}/{at - 1}/aux {split} {verb}.inf/0/root {thing}/{at - 1}/obj"
        yield ended(good, at, stop="?"), ended(bad, at - 1, stop="?")


def wh_island() -> Iterator[Pair]:
    seen = "bought saw found wanted needed lost sold made wrote read".split()
    for i in range(N):
        subject, did = subject_of(i, 4)
        at = 3 + len(subject.split())
        other = nth(["he", "she"], i) if "woman" not in subject else "he"
        own = nth(["say", "think", "hope"], i), nth(["wonder", "ask"], i // 3)
        clause = f"{other}/{at + 3}/nsubj {nth(seen, i + i // 6)}.past/{at}/ccomp"
        good, bad = (
            f"what/{at + 3}/obj {did}/{at}/aux {subject} {verb}.inf/0/root {mark}/{at + 3}/mark {clause}"
            for verb, mark in zip(own, ("that.mark", "whether"), strict=True)
        )
        yield ended(good, at, stop="?"), ended(bad, at, stop="?")


def coordination() -> Iterator[Pair]:
    acts = """see man,visit museum,watch movie,leave party,buy house,discuss plan,play game,read book,meet manager,
    find child,write letter,visit city""".replace("\n    ", "").split(",")
    for i in range(N):
        verb, thing = nth(acts, i).split()
        subject, did = subject_of(i + i // 12, 4)
        at = 3 + len(subject.split())
        begin = f"who/{{}}/{{}} {did}/{at}/aux {subject} {verb}.inf/0/root the/{at + 2}/det {thing}/{at}/obj"
        good = begin.format(at, "obl") + " with/1/case"
        bad = begin.format(at + 2, "conj") + " and/1/cc"
        yield ended(good, at, stop="?"), ended(bad, at, stop="?")


def adjective_order() -> Iterator[Pair]:
    phrases = """big red car,small white house,little black dog,old blue shirt,new white car,small black cat,
    big white house,old red book,new blue phone,big black dog,little red house,new French teacher,old English movie,
    young American doctor,famous Chinese restaurant,good Indian restaurant,new Italian restaurant,old German city,
    young French woman,big American truck,small Japanese phone,large green park""".replace("\n    ", "").split(",")
    verbs = "saw liked remembered found".split()
    for i in range(N):
        first, second, noun = nth(phrases, i).split()
        subject = nth(["she", "he", "they"], i)
        verb = f"{nth(verbs, i + i // 22)}.past{'s' * (subject == 'they')}"
        begin = f"{subject}/2/nsubj {verb}/0/root the/6/det"
        good, bad = (f"{begin} {a}/6/amod {b}/6/amod {noun}/2/obj" for a, b in ((first, second), (second, first)))
        yield ended(good, 2), ended(bad, 2)


# Of each paradigm: its pairs, and its names in the form of BLiMP.
PARADIGMS = [
    (simple_agreement, "agreement_simple", "subject_verb_agreement", "morphology"),
    (agreement_across_pp, "agreement_across_prepositional_phrase", "subject_verb_agreement", "morphology"),
    (agreement_across_relative, "agreement_across_relative_clause", "subject_verb_agreement", "morphology"),
    (determiner_noun, "determiner_noun", "determiner_noun_agreement", "morphology"),
    (anaphor_number, "reflexive_number", "anaphor_agreement", "morphology"),
    (anaphor_gender, "reflexive_gender", "anaphor_agreement", "morphology"),
    (irregular_forms, "irregular_past_and_participle", "irregular_forms", "morphology"),
    (transitive, "object_of_a_transitive_verb", "argument_structure", "syntax"),
    (intransitive, "no_object_of_a_transitive_verb", "argument_structure", "syntax"),
    (npi_ever, "ever_under_no", "npi_licensing", "semantics"),
    (npi_any, "any_under_never", "npi_licensing", "semantics"),
    (left_branch, "question_left_branch", "island_effects", "syntax"),
    (wh_island, "question_out_of_whether", "island_effects", "syntax"),
    (coordination, "question_out_of_coordination", "island_effects", "syntax"),
    (adjective_order, "adjective_order", "word_order", "syntax"),
]


def conllu(template: str, comments: list[str]) -> str:
    """Return a sentence in CoNLL-U."""
    rows, text = [], ""
    words = template.split()
    for number, word in enumerate(words, 1):
        form, head, relation = word.rsplit("/", 2)
        lemma, upos, xpos, feats = LEXICON[form]
        form = form if form in (".", "?") else form.split(".")[0]
        form = form[0].upper() + form[1:] if number == 1 else form
        last = number == len(words)
        text += form if last or not text else f" {form}"
        misc = "SpaceAfter=No" if number == len(words) - 1 else "_"
        rows.append("\t".join([str(number), form, lemma, upos, xpos, feats, head, relation, "_", misc]))
    return "\n".join([*comments, f"# text = {text}", *rows]) + "\n\n"


def content() -> str:
    """Return the file: the good sentence and the bad one of each pair in turn."""
    out = []
    for pairs, uid, term, field in PARADIGMS:
        for number, pair in enumerate(pairs(), 1):
            for template, acceptable in zip(pair, ("yes", "no"), strict=True):
                named = [f"# UID = {uid}", f"# linguistics_term = {term}", f"# field = {field}"]
                sent_id = f"# sent_id = {uid}-{number:02d}-{acceptable}"
                out.append(conllu(template, [sent_id, f"# acceptable = {acceptable}", *named]))
    return "".join(out)


if __name__ == "__main__":
    OUT.write_text(content(), "utf-8")
    print(f"{OUT.name}: {content().count('# acceptable = yes')} pairs", file=sys.stderr)
