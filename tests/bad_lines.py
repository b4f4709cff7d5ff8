"""Command lines that get one line on stderr and nothing else: {what it says: the lines, with | in
between}. {run} is a finished run, {tmp} an empty folder, {pipe} a run whose config is a pipe."""

HUGE = "9" * 30
ONE_OF = "--sample {run} --prompt x"
ICQA = "--data icqa --steps 6 --warmup_steps 1 --batch_size 8"
LINES = {
    # what no machine holds
    "of memory": "--d_model 1000000 | --n_loops 100000000 | --block_size 100000000 | "
    "--d_model 1000000000 --dry_run | --d_model 1000000000 --bench | --d_model 1000000000 "
    "--n_layers 1 2",
    "lower --batch_size, --block_size": "--batch_size 10000000000",
    "GiB for a batch's tokens": "--grad_accum 10000000000",
    "GiB for the rows": "--max_rows 10000000000",
    "as 10000 layers have: training needs": "--match_params 10000 --d_model 4096",
    # numbers, and several of them
    "not a whole number; several values stand apart: 1 2": "--n_layers 1,2",
    "not a number; several values stand apart": "--lr 3,5",
    "is not a whole number, or several": "--problem_steps ,",
    "warmup_steps": "--warmup_steps 1e999",
    "steps": f"--steps {HUGE} | --steps many",
    "lr inf does not work": "--lr inf",
    "2.5 does not work; give a whole number of steps, or a share": "--warmup_steps 2.5",
    "attn_scale 0.0 does not work; give a number at least 1e-09": "--attn_scale 0",
    "n_heads 3 does not divide d_model 64": f"--n_heads 3 | {ICQA} --n_heads 2 3",
    "does not divide d_model 64; near it 8, 16, 32, 64 do": "--d_model 64 --n_heads 1000000000000",
    "head size 3 is odd": "--position rotary --d_model 12 --n_heads 4",
    "does not work; give at least 1": f"--jobs -5 | --seed 0 1 --jobs {HUGE}",
    "does not work; give a number of layers": f"--match_params 0 | --match_params {HUGE}",
    "max_rows -5 does not work": "--score {run} --max_rows -5",
    "steps 0 does not work; give a whole number at least 1": "--resume {run} --steps 0",
    "has 0 twice; give each value": f"--seed 0 0 | {ICQA} --seed 0 1 0",
    "201 runs are more than 200; give --yes": f"{ICQA} --seed {' '.join(map(str, range(201)))}",
    # texts, and names that are none
    "was given an empty value": "--preset '' | --data embedded '' | --export_hf '' '' | --sample ''"
    " | --sample {run} --prompt '' | --tokenizer '' | --out_dir ''",
    "does not work; give a text that is not empty": "--name ' ' | --loader '\u3000' | --data ' '",
    "give a text that is not empty, without control characters": "--name 'a\x1b[31mb' | --out_dir "
    "'a\udcffb' | --data 'a\nb.txt'",
    "not within --out_dir": "--name . | --name a/../.. | --name {tmp}/a",
    "is too long; give at most 255 bytes": f"--name {'a' * 256} | --name a/{'é' * 128}",
    "is unknown; choose from": "--preset 'no\x1b[31mthing' | --loader ../tasks | --study depth.pyc "
    "| --position sideways | --packing half | --device tpu | --resume {run} --keep nothing | "
    "--seed 0 1 --loader nobody",
    "device 'abacus'": "--resume {run} --device abacus",
    "is unknown; give total or layers": "--match_params 2 --match nope",
    "makes no data; choose from": "--seed 0 1 --loader budget",
    # flags without effect
    "has no effect without --sample": "--prompt hello | --top_k 0 | --resume {run} --prompt x",
    "has no effect with --sample": f"{ONE_OF} --n_layers 3 | {ONE_OF} --dry_run | {ONE_OF} --jobs 0"
    f" | {ONE_OF} --loader my.py",
    "has no effect with --sample, which trains": f"{ONE_OF} --data my.py",
    "has no effect with --score": "--score {run} --lr 1",
    "has no effect with --mechanism": "--mechanism {run} --seed 1",
    "has no effect with --attention": "--attention {run} --name my.py | --attention {run} --data "
    "embedded.pyc | --attention {run} --data my.py a.jsonl",
    "has no effect with --export_hf": "--export_hf {run} out --match_params 3",
    "has no effect with --compare": "--compare {run} {run} --loader my.py",
    "has no effect with --report": "--report {run} --data my.py",
    "has no effect with --bench": "--bench --name x | --bench --out_dir x",
    "has no effect with --study": "--study depth --match_params 3 | --study heads --n_heads 2 | "
    "--study heads --n_layers 3 | --study ring --preset ring --n_layers 3 --d_model 64 | --study "
    "written --sizes way=filler | --study thinking --sizes answer=direct",
    "has no effect with --epochs": "--steps 5 10 --epochs 0 1 | --preset reread --steps 10",
    "has no effect on a single run": "--match_params 2 --n_layers 1 --jobs 3 | --jobs 2 | --yes",
    "has no effect without --match_params": "--match layers",
    "has no effect at --temperature 0": f"{ONE_OF} --top_k 3 | {ONE_OF} --num_samples 3 | {ONE_OF} "
    "--seed 7",
    "--num_samples has no effect with": "--sample {run} --chat --num_samples 3 --temperature 1",
    "are two things to do; give one": f"{ONE_OF} --resume {{run}} | --bench --dry_run",
    "keeps the run's settings; leave out": "--resume {run} --preset laptop | --resume {run} --lr 1 "
    "| --resume {run} --out_dir x | --resume {run} --name x | --resume {run} --match_params 0",
    "has several values, but --sample takes one": f"{ONE_OF} --seed 1 2",
    "--init_from keeps that of its weights; give one of": "--init_from {run} --match_params 3",
    "--fsdp shares the weights among the processes": "--bench --fsdp",
    "give --block_size 2 or more": "--bench --block_size 1",
    # sampling
    "--sample needs --prompt TEXT, --prompt_file FILE or --chat": "--sample {run}",
    "are two ways to ask; give one": f"{ONE_OF} --chat",
    "none is not there; give the path of a file": "--sample {run} --prompt_file {tmp}/none",
    "the prompt is empty; give some text": "--sample {run} --prompt ' '",
    "--prompt is not text": "--sample {run} --prompt 'a\udcff'",
    "n_loops 0 does not work": f"{ONE_OF} --n_loops 0",
    "--top_k 0 does not work; give a num": f"{ONE_OF} --top_k 0 --temperature 1",
    "--num_samples 0 does not work": f"{ONE_OF} --num_samples 0 --temperature 1",
    "give a number from 1 to 100,000": f"{ONE_OF} --max_new_tokens 0 | {ONE_OF} --max_new_tokens "
    "100001",
    "give 0, or 0.001 to 1000": f"{ONE_OF} --temperature nan | {ONE_OF} --temperature 1001 | "
    f"{ONE_OF} --temperature 1e-300",
    "give a whole number from 0 to 2147483648": f"{ONE_OF} --seed -1 | {ONE_OF} --seed {HUGE}",
    # runs, folders and files
    "holds no run": "--attention {run} {tmp}",
    "is no empty folder; choose another one": "--export_hf {run} {run}/config.json",
    "nowhere is not there; give a run's folder": "--resume {tmp}/nowhere",
    "it is not a regular file": "--resume {pipe} | --sample {pipe} --prompt x | --data {fifo}",
    "config.json is not a folder; give one": "--out_dir {run}/config.json | --out_dir "
    "{run}/config.json/a/b --seed 0 1",
    "nothing can be written in /proc (": "--out_dir /proc/x | --out_dir /proc/x --seed 0 1 | "
    "--out_dir /proc --dry_run | --compare {run} {run} --out_dir /proc | --attention {run} "
    "--out_dir /proc",
    "is not there; give the path": "--data embedded --val_data nowhere.csv | --data embedded "
    "--max_rows 100 --val_data some/hub | --dry_run --data "
    "nowhere.jsonl | --dry_run --data ./nowhere | --dry_run --data a/b nowhere.jsonl | --data "
    "embedded a/b/c --max_rows 100 | --data gone.jsonl --seed 0 1",
    "is not there; give a Python file": "--attention {run} --data nothere.py | --mechanism {run} "
    "--loader no.py | --preset report --loader no.py --dry_run | --data {tmp}/mine.py --n_layers "
    "1 2",
    "data nothing*.jsonl fits no file that ends in one of .jsonl": "--data nothing*.jsonl",
    "is no list of rows, ": "--data {run}/tokenizer",
    "is a folder without a file that ends in one of": "--data {tmp}/piped",
    "names no data set; give HUB_ID or HUB_ID:SUBSET": "--data : | --data :main",
    "twice; give each source once": "--data {tmp}/a.jsonl {tmp}/../{tmp.name}/a.jsonl | --data "
    "{tmp}/link.jsonl {tmp}/a.jsonl",
    "cannot be read": "--tokenizer {tmp} | --tokenizer {tmp} --dry_run --data some/hub",
    "config.json is a file; give the folder that holds it": "--tokenizer {run}/config.json",
    "finished holds the folder tokenizer; give ": "--tokenizer {run}",
    "is not there; give the folder that": "--tokenizer ./notthere --dry_run | --tokenizer "
    "../notthere --dry_run --data some/hub | --tokenizer {tmp}/notthere --dry_run | --tokenizer "
    "./notthere --n_layers 1 2 | --tokenizer embedded ./notthere --dry_run",
    # what argparse says, cut to a line
    "argument --n_layers: '9999": f"--n_layers {'9' * 5000}",
    "unrecognized arguments: a\\x1b]0;b": "'a\x1b]0;b'",
    "is --n_layers meant?": "--n_layer 12",
    "is --device meant?": "--devise=cpu",
    "is --dry_run meant?": "--dry-run",
    "is --no-tie_weights meant?": "--no_tie_weights",
    "is given twice": "--lr=1e-3 --lr 2e-3 | --compile --no-compile",
    "expected": "--n_layers",
    # what the data has and has not
    "power 1000 does not work; give 0 to 10": "--data mqar --sizes power=1000",
    "draws what it is validated on; leave it out": "--data icqa --val_data {tmp}/x.csv",
    "makes its own problems to validate": "--data embedded --loader thinking --val_data x.jsonl",
    "rows of text: walk has none; give --data FILE": "--study packing --preset walk",
    "does not work with embedded; leave out --preset": "--study walk --preset laptop --dry_run",
    "does not work with embedded; leave out --data": "--study hold --data embedded --dry_run",
    "its own preset, thinking, and does not work with icqa": "--study thinking --preset tasks",
    "vocab_size 100 is less than the data's 332": "--dry_run --max_rows 99 --data embedded "
    "--vocab_size 100",
    "sizes x is none of the loader th": "--preset report --loader thinking --sizes x=1 --dry_run",
    "sizes pears is none of the task icqa's; it has": f"{ICQA} --seed 0 1 --sizes pears=3",
    "needs 90 different questions": f"{ICQA} --seed 0 1 --sizes pairs=8 pairs=90",
    "are for a task or a loader": "--data embedded --sizes x=1 --seed 0 1 | --sizes =",
    "a task's data never repeats; give --steps": "--data icqa --epochs 2 | --data icqa --epochs 2 "
    "--seed 0 1",
    "does not work; give a whole number from 1 to 1,000,000": "--data icqa --sizes symbols=0 | "
    f"--data icqa --sizes symbols=x | --data icqa --sizes symbols={HUGE} | --data khop --sizes "
    "hops=1+x | --data icqa --sizes pairs=4+8",
    "gives a size twice": "--data icqa --sizes symbols=4,symbols=8",
    "whose sequences have 1000001 tokens; give at": "--data khop --sizes length=1000000",
    "does not mix; give it alone": "--data icqa embedded | --data khop icqa | --data embedded khop",
    "there is no sequence for the test; give larger": "--data parity --sizes n=1 | --data "
    "composition --sizes n=1,group=Z60 | --data brackets --sizes n=1,length=1",
    "length 2 with 2 symbols has room for 0; give": "--data khop --sizes symbols=2,length=2",
    "a study varies seed and sizes alone": f"--study depth --n_layers 1 2 | {ICQA} --study depth "
    "--d_ff 0 64",
    "several values of a flag make a grid": f"{ICQA} --seed 0 1 --bench",
    "leaves none of 5 steps; give at most 4": "--epochs 2 --lr_steps 5 --warmup_steps 5 | --steps "
    "5 --warmup_steps 5",
    "--compile needs a C++ compiler, and there is no g0": f"{ICQA} --seed 0 1 --compile --device "
    "cpu | --preset laptop --compile --device cpu --dry_run",
    # sizes of tasks
    "is none of the task": "--data icqa --sizes hints=0.5 | --preset walk --sizes letters=9",
    "does not work; give a number from 0": "--preset walk --sizes gate=x | --data icl_template "
    "--sizes hints=inf | --data icl_template --sizes hints=nan | --preset ring --sizes early=x",
    "unknown; choose from": "--preset walk --sizes loss_after=some | --preset walk --sizes "
    "hints=2 | --preset written --sizes way=aloud | --preset ring --sizes answer=aloud | --preset "
    "map --data composition --sizes group=S4",
    "has one twice; give each once": "--data khop --sizes hops=1+1 | --preset ring --sizes "
    "lengths=1+1",
    "17 different questions, but there are 16": "--data icqa --sizes pairs=17",
    "is too short for the task": "--data icqa --block_size 23 | --preset map --data parity --sizes "
    "n=99",
    "length 5 makes no list of pairs": "--data template --sizes length=5",
    "3 different symbols, but there are 2": "--data template --sizes symbols=2",
    "16 different patterns": "--data icl_template --sizes blocks=16",
    "hops 26 is too much: length 48": "--data khop --sizes hops=26",
    "symbols 1: none could follow": "--data khop --sizes symbols=1",
    "is too short: its letters are all neighbours; give 4 or more": "--preset walk --sizes "
    "ring=3,hops=1 | --preset sums --sizes ring=3",
    "is too much: a ring of": "--preset walk --sizes hops=16 | --preset strides --sizes stride=12 |"
    " --preset hold --sizes hops=8",
    "a ring of 8 has room for": "--preset ring --sizes lengths=5 | --preset ring --sizes "
    "lengths=8,answer=written",
    "no letter is a step on; give at least 2": "--preset ring --sizes ring=1",
    "make one ring, and none is left": "--preset ring --sizes ring=2,letters=2,lengths=1",
    "needs 20 different letters, but there are 16": "--preset ring --sizes ring=20",
    "stride 5 does not divide a ring of 12": "--preset strides --sizes stride=5",
    "loops 4 is too few: 4 hops take 5": "--preset hold --sizes loops=4",
    "n 8 is too much: a path has 7 steps": "--preset map --data reachability --sizes n=8",
    "has a loss after each loop, but --bench": "--preset walk --bench",
    "no gradient reaches the embed": "--preset hold --gradient_loops 4 --loop_start state",
    "the first loop, which alone": "--preset hold --gradient_loops 4 --loop_keeps 16",
}  # fmt: skip
LINES = [(line.strip(), words) for words, lines in LINES.items() for line in lines.split(" | ")]

TEXT = b'{"text": "some words of text"}\n'
ASKED = b'{"question": "1 + 1", "answer": "#### 2"}\n'
NO_JSON, NO_ROW, FEW = "is no JSON to read", "can be read: row 1: ", "it needs at least 2, one to"
SAID = b'{"messages": [%b]}\n'
# {what it says: contents of a.jsonl}
ROWS = {
    "line 2 is no JSON to read": [
        TEXT + line for line in (b"not JSON\n", b'{"text": "a"} {"text": "b"}', b'{"a":' * 50_000,
                                 b'{"text": ' + b"9" * 5000 + b"}")
    ],
    "line 4 is no JSON to read": [TEXT + b"\n\n{"],
    "is half a character": [
        TEXT + line for line in (b'{"text": "x\\udc00y"}\n', b'{"\\ud800": "x"}\n')
    ],
    "is a NUL": [TEXT + b'{"text": "\x00"}'],
    "line 1 is no JSON to read": [b"<html>", b"version https://git-lfs.github.com/spec/v1"],
    "a.jsonl, line 1 is no JSON to read": [b"[\n" + TEXT + b"3"],
    "character 1 is not text in UTF-8; save it as UTF-8": ["[1]\n".encode("utf-16")],
    "is not text in UTF-8": ["café".encode("latin-1")],
    "has 1 row; " + FEW: [b"[" + TEXT.strip() + b"]", TEXT],
    "has 0 rows; " + FEW: [b"\n\n\n", b"\xef\xbb\xbf"],
    NO_ROW + "it is a number, no object; a row has messages": [b"1\n2\n"],
    NO_ROW + "it is null": [b"null\nnull\n"],
    NO_ROW + "it is a list, no object": [b"[]\n[]\n"],
    NO_ROW + "it has no columns": [b"{}\n{}\n"],
    NO_ROW + "text is a number, no text": [b'{"text": 1}\n{"text": null}\n'],
    NO_ROW + "text has a part that is no text": [b'{"text": [1]}\n{"text": {}}\n'],
    NO_ROW + "text is true or false": [b'{"text": true}\n' * 3],
    NO_ROW + "text is empty": [b'{"text": ""}\n' * 9],
    NO_ROW + "answer is null, no text": [b'{"question": "a"}\n' * 3],
    NO_ROW + "question is a number": [b'{"question": 1, "answer": 2}\n' * 3],
    NO_ROW + "answer is empty": [b'{"question": "a", "answer": ""}\n' * 3],
    NO_ROW + "it has messages (a list)": [SAID % b"" * 3],
    NO_ROW + "a message is a number": [SAID % b"1, 2" * 3],
    NO_ROW + "content is null, no text": [SAID % b'{"role": "user"}' * 3],
    NO_ROW + "a role is": [
        SAID % b'{"role": %b, "content": "a"}' % role * 3 for role in (b"1", b"null", b'""')
    ],
    "has a part that is no": [SAID % b'{"role": "user", "content": [{}]}'],
    NO_ROW + "messages is an object, no list": [b'{"messages": {"role": "user"}}\n' * 3],
    "--loader llmini": [b'{"question": "a", "passage": "b", "answer": true}\n' * 3,
                        b'{"question": {"stem": "a"}, "answerKey": "A"}\n' * 3],
    "it has \\x1b[31m": [b'{"\\u001b[31m": 1}\n' * 3],
    "it has kkkk": [b'{"%b": 1}\n{}' % (b"k" * 100_000)],
    "all 9 rows are the same, none can be held out; give other rows too": [TEXT * 9],
    "do not fill a block of 104 to learn from": [TEXT + ASKED, ASKED + ASKED.replace(b"1", b"3")],
}  # fmt: skip
FILES = [("a.jsonl", content, words) for words, contents in ROWS.items() for content in contents]
NO_LIST, NO_TASK = "is no list of rows, [{…}, {…}]", "has no TASK, an object of a class"
NO_NAMES, ENDINGS = "its first line has no name that is known: ", "that ends in one of .jsonl"
for words, name, *contents in [
    (NO_JSON, "a.json", b"[" * 50_000, b"[" + b"9" * 5000 + b"]", b"", b'[{"text": "a"}', TEXT * 2),
    ("is half a", "a.json", b'[{"text": "\\ud800"}]'),
    (NO_LIST, "a.json", b"{}", b"3", b'{"rows": [{"text": "a"}]}'),
    ("has 0 rows; " + FEW, "a.json", b"[]"),
    ("has 0 rows; " + FEW, "a.txt", b"", b"\n \n\t\n\n"),
    ("has 0 rows; " + FEW, "a.csv", b"a,b"),
    ("has 1 row; " + FEW, "a.txt", b"one line"),
    ("character 2 is a NUL; leave it out or", "a.txt", "words words\n".encode("utf-16-le")),
    ("character 1 is not text in UTF-8", "a.txt", "words\n".encode("utf-16")),
    ("do not fill a block of 104", "a.txt", b"a\nb\n"),
    ("cannot be read", "a.parquet", b"", b"PAR1" + b"\xff" * 100 + b"PAR1"),
    (NO_NAMES + "3, title, words; a table", "a.csv", b"3,title,words\n" * 3),
    ("has 1 row; it needs at least 2", "a.csv", b'question,answer\n1,"2'),
    ("3 has 3 cells, but the header", "a.csv", b"text\nThe cat\nThe cat, which is grey, sleeps\n",
     b"question,answer\n\nhow many,7, as it seems\n"),
    ("4 has 1 cell, but the header", "a.csv", b'question,answer\n"how\nmany",7\nhow much\n7\n'),
    ("put texts with ; or line ends in quotes", "a.csv", b"question;answer\n1;2;3\n"),
    ("put texts with tabs or line ends in quotes", "a.tsv", b"question\tanswer\n1\t2\t3\n"),
    ("1 names two columns text; give each a name of its", "a.csv", b"text, Text\none,two\n"),
    (ENDINGS, "a.doc", b"a,b"), (ENDINGS, "a", b"a"),
    ("Compressed file ended before", "a.jsonl.gz", b"\x1f\x8b"),
    ("Not a gzipped file", "a.txt.gz", b"words"),
    ("a.py cannot be executed", "a.py", b"1 / 0", b"\x00", b"raise SystemExit(0)"),
    (NO_TASK, "a.py", b"TASKS = 3", b"TASK = 3"),
    ("squad.json has an article that is none of SQuAD's", "squad.json", *(
        b'[{"paragraphs": [{"context": "a", "qas": [%b]}]}]' % asked
        for asked in (b'"a"', b"{}", b'{"question": "a", "answers": ["b"]}'))),
]:  # fmt: skip
    FILES += [(name, content, words) for content in contents]
