"""The cases of `tests/equal.py`: name -> command lines, one a line, and the files that they read.

{in} is the folder of `write_inputs`, {cases} and {files} are tests/cases/data and tests/dictionaries, {data} is
$DERIVLANG_DATA, without which a case is skipped; `USUAL` has the others. `scores RUN FILE` writes derivlang.scores of a
run. `stopped …` ends a run of pretrain after its 10th step.
"""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "derivlang" / "sources" / "demo"

SMALL = "--batch-size 8 --log-every 3 --threads 1"
USUAL = {
    "small": f"{SMALL} --vocab-size 300 --seq-len 32",
    "run": f"--source demo --t trans,inv {SMALL} --vocab-size 300 --seq-len 32 --steps 12",
    "stop": f"--source demo --t trans,inv {SMALL} --vocab-size 300 --seq-len 32 --steps 60 --save-every 10",
    "elsewhere": f"--source demo --t inv --model {{in}}/bert.toml {SMALL} --vocab-size 300 --seq-len 128 --steps 12",
    "several": f"--tokenizer joint --words space {SMALL} --seq-len 32 --steps 6",
    "init": f"--init model {SMALL} --steps 12",
    "tune": "--seeds 1 --epochs 1 --lr 2e-3 --batch-size 16 --max-length 64 --train-examples 16 --threads 1 --json",
    "tune_few": "--seeds 1 --epochs 1 --lr 2e-3 --batch-size 16 --max-length 64 --train-examples 4 --threads 1 --json",
    "few": "--threads 1 --pairs 20 --sentences 20 --ngram-sentences 50 --json",
}
BERT = """[model]
type = "bert"
hidden_size = 32
num_hidden_layers = 2
num_attention_heads = 2
intermediate_size = 48

[training]
vocab_size = 300
seq_len = 32
batch_size = 8
steps = 12
learning_rate = 3e-3
warmup = 0.1
mask = 0.15
"""
GRID = """[study]
source = "demo"
steps = 4
workers = 1
threads = 1

[factors]
order = ["inv", "perm"]
seed = [1, 2]

[cell]
t = "trans,{order}"
vocab-size = 300
seq-len = 32

[evaluate]
task = "pos:demo"
seeds = 1
epochs = 1
lr = 2e-3
measure = "alignment"

[report]
baseline = { order = "inv" }
"""
EXPORTS = "text jsonl conllu pharaoh tsv csv squad bracketed".split()
ORDERS = """identity inv inv:final=move inv:local=3 inv:from=random:mark=R inv:from=random:rng=numpy inv:from=end perm
    perm:window=3 perm:seed=2 perm,perm shuffle shuffle:by=length shuffle:local=3:derange=yes shuffle:by=window:local=3
    shuffle:rate=0.5 shuffle:rate=0.5:how=swaps shuffle:blocks=2 shuffle:rng=numpy shuffle:by=length:rng=python
    mallows:0.4 mallows:by=sentence:final=move flip:0.3 stride stride:3 exchange:0-2
    sort sort:first=rare sort:{files}/counts.tsv"""
TREES = """syn:fr syn:ja:freeze=none syn:fr@N~hi@V:mode=argmax syn:hi:model="side=0.75" syn:ja:model="pairwise=0.7"
    syn:de:temperature=2:punct=permute sov:ovs sov:random:nonprojective=keep-order swap swap:ADP-NOUN grammar
    grammar:random=3 grammar:weights={files}/weights.tsv:heads=function hop hop:tokens=3 drop drop:DET+AUX lemma case
    case:erg-abs:suffix=free case:{files}/suffixes.tsv:stem=lemma agree agree:subj+obj+iobj:system=erg-abs:on=aux"""
WORDS = """trans trans:greek:overlap=25 trans:copy:overlap=50:by=frequency trans:overlap=50:by=mass trans:offset=200000
    trans:clones=2 trans:private:table=1 lex:{files}/toy.tsv lex:{files}/toy.tsv:rate=50:choose=first scramble
    scramble:within=length scramble:within=frequency trans,syn:fr,inv
    dialect:phon=0.2:suffix=0.5:nonce=0.8:words={files}/words.txt"""
GENERATED = "dyck=3:length=8:n=40 dyck=3:length=8:n=40:cross=yes zipf=50:n=40 pcfg=six-switches:n=40 resample=demo"
FORMATS = {
    "text": ["t1_wikitext.tokens", "t12_nfc_nfd.txt", "t6_latin.txt --encoding latin-1", "t4_crlf.txt --words unicode"],
    "conllu": ["a1_empty01.conllu", "a10_gap.conllu", "a13_coref.conllu", "a5_comments.conllu"],
    "jsonl": ["c9_ner.jsonl", "c7_spans.jsonl", "d5_snli.jsonl", "c9_pos_tags.jsonl"],
    "tagged": ["b6_conll03.conll", "b22_bilou.conll --repair-tags", "b10_wikiann_orig.conll", "b1_uner.iob2"],
    "delimited": ["d1_pawsx_quotes.tsv", "d20_glue.tsv", "d8_mnli_mixed.tsv", "d2_pawsx_blank.tsv"],
    "csv": ["m1b_bomsemi.csv", "d11_quotecsv.csv", "m8_nlq.csv", "m2_spacehead.csv"],
    "parquet": ["p1_polars.parquet", "p13_hfclass.parquet", "p15_translation.parquet", "p16_shards"],
    "squad": ["e1_emoji.json", "e5_v2.json --answers atomic", "e11_rtl.json --answers drop", "e9_flat.jsonl"],
    "bracketed": ["f6_trace.mrg", "f7_multi.mrg", "f4_rawparen.mrg", "f3_lrb.mrg"],
}
STUDIES = "deshpande2022 kallini2024 white2021 papadimitriou2023 xu2026 bafna2025 k2020 sinha2021 wu2023"
COMMANDS = """derive make plan work finish show explore stats match verify export push undo parse dict pair grammar
    tokenizer parser align pretrain evaluate report study ls"""


def each(line: str, values: Iterable[object]) -> str:
    """A line for each value, which stands for {} in it, and its number for {n}."""
    return "\n".join(line.replace("{}", str(value)).replace("{n}", str(n)) for n, value in enumerate(values))


def makes(specs: str, source: str, options: str = "") -> str:
    return each(f"make --t {{}} {source} -o set{{n}} --json {options}", map(shlex.quote, specs.split()))


def one_format(files: list[str]) -> Iterator[str]:
    """Make, undo, show and export a set of each file, in every format, its source side, too."""
    for n, file in enumerate(files):
        yield f"""make --t trans,inv {{cases}}/{file} -o set{n} --json
            undo set{n} -o back{n}
            verify set{n} --json
            show set{n} --json
            show set{n}"""
        for side in ("", "--source"):
            yield each(f"export set{n} {side} --format {{}}", [*EXPORTS, "text --documents"])


def strangers() -> Iterator[tuple[str, str]]:
    """Every file of tests/cases/data, by the first letter of its name."""
    names = sorted(path.name for path in (ROOT / "tests" / "cases" / "data").iterdir())
    for first in sorted({name[0] for name in names}):
        some = [name for name in names if name[0] == first]
        yield f"strangers/{first}", each("make --t trans,inv {cases}/{} -o {}.set --json", some)


def plans() -> Iterator[str]:
    """The plan of each shipped study at each scale; a scale that a study lacks is an error on both sides."""
    names = sorted(path.stem for path in (ROOT / "derivlang" / "studies" / "studies").glob("*.toml"))
    for scale in ("tiny", "base", "small", "paper"):
        yield each(f"study {{}} --scale {scale} --dry-run --rate 1e6 --json --data-dir . -o out", names)


CASES: dict[str, str] = {
    "sets/orders": makes(ORDERS, "demo"),
    "sets/trees": makes(TREES, "demo"),
    "sets/words": makes(WORDS, "demo"),
    "sets/switches": makes("switch switch:010110,trans inv", "source:pcfg=six-switches:n=100"),
    "sets/brackets": makes("np np:D-A-N-Num hop:edge=VP:by=tags", "{in}/trees.mrg"),
    "sets/pairs": makes("trans,inv perm:window=3 trans:overlap=20 syn:fr", "demo:nli"),
    "sets/questions": f"""{makes("trans:copy,perm:window=3 inv", "demo:qa", "--answers atomic")}
        make --t inv demo:qa -o drop --answers drop
        make --t inv demo:pairs -o minimal""",
    "sets/rules": each("make --t trans,perm demo -o set{n} --json {}", (
        "--entities drop", "--entities atomic", "--mwt atomic", "--sentences period", "--sentences unit", "--seed 2",
        "--columns key,tokens", "--limit 5", "--shard-tokens 300", "--workers 2", "--splits test")),
    "sets/generated": each("make --t trans,inv source:{} -o set{n}", GENERATED.split()),
    "sets/ranks": """
        plan --t trans,inv demo -o set --world 2
        work set --rank 0 --world 2
        work set --rank 1 --world 2
        finish set
        verify set --json
        make --t identity demo -o plain
        verify set plain""",
    "sets/parsed": """
        make --t syn:fr {in}/a.txt -o set
        parse {in}/raw.txt -o parsed --parser english-light
        make --t sov demo:nli -o nli""",
    **{f"formats/{name}": "\n".join(one_format(files)) for name, files in FORMATS.items()},
    "formats/demo": f"""
        make --t trans,inv demo -o set
        show set --html rows.html
        show set --split test --html row.svg
        push set me/set --dry-run
        undo set -o back
        {each("export set --split train --format {}", EXPORTS)}
        {each("export set --split test --format {} --source", EXPORTS)}""",
    **dict(strangers()),
    "lexical/dict": f"""
        {each("dict --t trans --coverage 25 --by {} demo -o {}.tsv", ("random", "frequency", "mass"))}
        dict --t trans demo
        dict --t trans:overlap=25 demo -o d.txt
        dict --t trans --coverage 50 --noise 20 --heldout 10 demo -o noisy.json --seed 3
        make --t trans,inv demo -o set
        dict set -o own.tsv
        tokenizer train --vocab-size 300 demo -o tok
        dict --t trans --level token --tokenizer tok demo -o tok.tsv
        {each("dict check {cases}/{} -o clean{n}.tsv", ("k1_muse_space.txt", "k8_dup.txt", "k11.tsv", "k12.csv"))}""",
    "lexical/tokenizer": f"""
        tokenizer train --vocab-size 300 demo -o tok
        {each("tokenizer twin tok -o twin{n} --t {}", ("trans", "trans:greek", "trans:private --joint"))}""",
    "lexical/pair": f"""
        tokenizer train --vocab-size 300 demo -o tok
        tokenizer twin tok --t trans -o twin
        make --t trans,inv demo -o set
        {each("pair set --split train --rate 25 --format {}", ("pharaoh -o links.pharaoh", "parquet -o pairs.parquet",
        "text -o text", "pharaoh --seed 2",
        "parquet --tokenizer tok --twin twin -o subwords.parquet"))}""",
    "lexical/align": f"""
        make --t trans,inv demo -o set
        export set --split train --format text --source -o a.txt
        export set --split train --format text -o b.txt
        export set --split train --format pharaoh -o gold.pharaoh
        {each("align train a.txt b.txt -o {n}.pharaoh --json {}", ("", "--lower", "--model ibm2", "--symmetrise union",
        "--symmetrise intersection --iterations 3", "--symmetrise grow-diag-final-and"))}
        {each("align score {}.pharaoh gold.pharaoh --json", range(6))}
        {each("align score {cases}/{}.pharaoh {cases}/g1_gold.pharaoh", ("g1_hyp", "g6_dots"))}""",
    "lexical/grammar": """
        grammar ls --json
        grammar show fr --json
        grammar count {in}/trees.conllu -o counts.tsv
        grammar fit {in}/trees.conllu -o my.grammar.tsv
        grammar score fr {in}/trees.conllu
        grammar score my.grammar.tsv {in}/trees.conllu --json
        grammar probs --superstrate fr --head VERB --nodes 'NOUN&nsubj @VERB&@ NOUN&obj' --json
        make --t syn:my.grammar.tsv demo -o set
        parser ls --json
        parser score english {in}/trees.conllu --json
        parser score english-light {in}/trees.conllu --json""",
    "distances/stats": """
        make --t trans,inv demo -o set
        stats set --json
        stats demo --json -o stats.parquet --t inv --t perm --t syn:fr --t mallows:0.4 --t drop --t trans:overlap=25
        tokenizer train --vocab-size 300 demo -o tok
        stats --t trans,inv --tokenizer tok demo
        match --t stride:2 demo --json
        match --t perm:window=3 --family shuffle demo --json
        match --t perm --by entropy source:pcfg=six-switches:n=400 --json""",
    "text/derive": f"""
        {each("derive --t {}", ("trans,inv 'Welcome to ACL .'", "perm 'It works.' --json",
        "inv 'A b c.' --words unicode", "syn:fr 'She bought the old red car yesterday.'", "invv x", "sort 'a b c'"))}
        show --t trans,inv --words space 'Welcome to ACL .'
        ls --json
        ls
        --version
        {each("ls --study {} --json", STUDIES.split())}""",
    "text/help": f"""
        --help
        pretrain --help-all
        {each("{} --help", COMMANDS.split())}""",
    "train/mlm": "pretrain {run} -o run --objective mlm",
    "train/align-mlm": """
        pretrain {run} -o run1 --objective align-mlm
        pretrain {run} -o run2 --objective align-mlm:only=align --dict-by frequency""",
    "train/clm": """
        pretrain {run} -o run --objective clm --model tiny-gpt
        export run --format transformers -o model""",
    "train/dict-mlm": """
        pretrain {run} -o run1 --objective dict-mlm
        pretrain {run} -o run2 --objective dict-mlm:variant=input:among=all
        pretrain --source demo --t trans:overlap=25,inv {small} --steps 12 -o run3 --objective dict-mlm""",
    "train/dict-tlm": """
        pretrain {run} -o run1 --objective dict-tlm:switch=50
        pretrain {run} -o run2 --objective dict-tlm:condition=yes --model {in}/bert.toml --pair-length 32""",
    "train/dict-tlm-words": """
        pretrain {elsewhere} -o run1
        export run1 --format transformers -o model
        pretrain {init} --pairs {in}/bitext --dictionary {in}/words.txt -o run2 --objective dict-tlm:switch=80
        pretrain {init} --source demo --t inv -o run3""",
    "train/ppa": """
        pretrain {run} -o run1 --objective ppa:queue=20:shortest=2
        pretrain {run} -o run2 --objective ppa:queue=20:shortest=2:words=mlm""",
    "train/tlm": """
        pretrain {run} -o run1 --objective tlm
        pretrain --source demo --t perm:unit=token {small} --steps 12 -o run2 --objective tlm:reset=no""",
    "train/weam": """
        pretrain {run} -o run1 --objective weam
        pretrain {run} -o run2 --objective weam:links=hmm:weight=0.5""",
    "train/xlm": """
        pretrain {run} -o run1 --objective xlm
        pretrain {run} -o run2 --objective xlm:pairs=0.5:tlm=0.5""",
    "train/xlm-align": """
        pretrain {run} -o run1 --objective xlm-align --accumulate 2 --pair-length 32
        pretrain {run} -o run2 --objective xlm-align:query=all-aligned:filter=no
        stopped pretrain {stop} --accumulate 2 --pair-length 32 -o run3 --objective xlm-align
        pretrain {stop} --accumulate 2 --pair-length 32 -o run3 --objective xlm-align --resume""",
    "train/rows": f"""
        {each("pretrain {run} -o run{n} {}", ("--packing stream", "--packing single", "--halves", "--languages derived",
        "--replacements both", "--replacements none --mask 0.2", "--language-ids --model {in}/bert.toml",
        "--own positions --model {in}/bert.toml", "--budget predictions --objective tlm"))}
        {each("pretrain --source demo --t trans,inv {small} -o more{n} {}", ("--tokens 2000", "--epochs 1"))}""",
    "train/weights": f"""
        pretrain {{run}} -o run
        {each("pretrain {run} -o run{n} {}", ("--no-tie", "--embeddings copy", "--freeze embeddings", "--init run",
        "--init run@12 --embeddings new", "--seed 2 --lr 1e-3 --weight-decay 0.1 --beta2 0.98 --clip 0.5",
        "--precision bf16"))}""",
    "train/languages": each("pretrain {small} --steps 12 -o run{n} --source {}", (
        "demo --t trans:overlap=25", "demo --t trans:overlap=75", "demo --t sort", "demo --t trans,syn:fr",
        "{in}/a.txt --t identity --derived-source {in}/b.txt --tokenizer-for both",
        "demo --t lex:{files}/toy.tsv --tokenizer-for each", "demo --t dialect:phon=0.3 --tokenizer-for both")),
    "evaluate/tasks": """
        pretrain {run} -o run
        evaluate run {tune} --measure none --predictions --task pos:demo,ner:demo,dep:demo,xnli:demo:nli,blimp:demo
        evaluate run {tune} --measure none --task pawsx:{in}/pawsx
        evaluate run {tune_few} --measure none --task qa:{in}/qa
        scores run run.scores.parquet""",
    "evaluate/regimes": """
        pretrain {run} -o run
        evaluate run {tune} --measure none --task pos:demo --freeze embeddings --schedule constant
        evaluate run {tune} --measure none --task xnli:demo:nli --regime cs
        evaluate run {tune_few} --measure none --task qa:{in}/qa --regime cs
        scores run run.scores.parquet""",
    "evaluate/measures": """
        pretrain {run} -o run --objective align-mlm --save-every 6
        evaluate run {few} --measure alignment,contextual,retrieval,links,ngrams,perplexity,projection
        evaluate run {few} --every-checkpoint --measure contextual,perplexity
        scores run run.scores.parquet""",
    "evaluate/causal": """
        pretrain --source demo --t hop {small} --steps 12 -o run --objective clm --model tiny-gpt
        evaluate run {few} --task blimp:demo --measure regions,surprisal,ngrams,perplexity
        scores run run.scores.parquet""",
    "evaluate/elsewhere": """
        pretrain {elsewhere} -o run1
        export run1 --format transformers -o model
        evaluate --init model --t inv --source demo -o out {few} --measure links,retrieval,contextual
        scores out out.scores.parquet""",
    "evaluate/targets": """
        tokenizer train {in}/a.txt --text {in}/b.txt --words space --vocab-size 200 -o joint
        pretrain --language en=text:{in}/a.txt --language la=t:trans --language fr=text:{in}/b.txt {several} -o run
        evaluate run {tune} --measure alignment --predictions --task pos:demo+fr=demo
        evaluate run {few} --target fr --measure links:en-fr={in}/bitext,retrieval:en-fr={in}/bitext
        evaluate run {few} --target fr --measure translation:en-fr={in}/words.txt
        scores run run.scores.parquet""",
    "report/runs": f"""
        {each("pretrain {run} -o runs/{} --objective {}", ("mlm", "align-mlm"))}
        {each("evaluate runs/{} {tune} --task pos:demo --measure retrieval --pairs 20", ("mlm", "align-mlm"))}
        report runs -o report --baseline objective=mlm""",
    "report/study": """
        study {in}/grid.toml -o study
        verify study --json
        scores study study.scores.parquet""",
    "plans/studies": "\n".join(["study --list --json", "study {in}/grid.toml --dry-run --rate 1e6 --json", *plans()]),
    "data/sets": each("make --limit 150 --data-dir {data} -o set{n} --t {}", ("trans,inv wikitext2", "inv ner:fr",
        "trans:armenian,perm pos", "trans,perm xnli", "trans,inv pawsx", "trans,inv squad:de", "syn:fr wikitext2")),
    "data/train": """
        pretrain --source wikitext2 --t trans,inv --data-dir {data} --limit 400 --threads 1 --steps 30 -o run
        evaluate run --data-dir {data} {tune} --task pos,ner --measure none
        scores run run.scores.parquet""",
}  # fmt: skip


def write_inputs(folder: Path) -> None:
    """Write what the cases read beside the demo and the files of the tests."""
    draws = random.Random(1)
    words = ["".join(draws.choices("abdegiklmnoprstu", k=draws.randint(2, 7))) for _ in range(120)]
    lines = [" ".join(draws.choices(words, k=draws.randint(3, 12))) + " ." for _ in range(120)]
    texts = {
        "a.txt": "".join(f"{line}\n" for line in lines[:60]),
        "b.txt": "".join(f"{line}\n" for line in lines[60:]),
        "raw.txt": "She didn't buy it. They sold the old car (cheaply) to Ann's uncle!\n\nIt rains, so we stay.\n" * 5,
        "words.txt": "".join(f"{one} {other}\n" for one, other in pairwise(words)),
        "trees.conllu": (DEMO / "demo-ud-train.conllu").read_text("utf-8"),
        "trees.mrg": "(S (NP (DT the) (CD two) (JJ old) (NNS cars)) (VP (VBZ stops) (ADVP (RB there))) (. .))\n" * 3,
        "bert.toml": BERT,
        "grid.toml": GRID,
        "bitext.source": "".join(f"{line}\n" for line in lines[:60]),
        "bitext.derived": "".join(f"{line}\n" for line in lines[60:]),
        "bitext.pharaoh": "0-0\n" * 60,
    }
    for name in ("train", "dev", "test"):
        texts[f"qa/{name}.json"] = (DEMO / "demo-qa-test.json").read_text("utf-8")
        pairs = (DEMO / f"demo-nli-{name}.tsv").read_text("utf-8")
        pairs = re.sub(
            r"\t(neutral|contradiction)$", "\t0", pairs.replace("\tentailment\n", "\t1\n"), flags=re.MULTILINE
        )
        texts[f"pawsx/{name}.tsv"] = f"sentence1\tsentence2\tlabel\n{pairs}"
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
