"""A run and a grid as a page: it holds all that it shows, and nothing in it is executed."""

import dataclasses
import html
import json
import re
import shutil
from html.parser import HTMLParser

import pytest

import minidepth as md
from conftest import call
from minidepth_lab.base import configs, console
from minidepth_lab.keep import checkpoints
from minidepth_lab.measure import results
from minidepth_lab.rows import to_data
from minidepth_lab.show import report
from minidepth_lab.tasks.base import own_code


class Reader(HTMLParser):
    """The tags, the addresses and the text of a page; every tag is closed that has to be."""

    ALONE = {"meta", "img", "br", "!doctype"}

    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses, self.text, self.open = [], [], "", []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href")]
        if tag not in self.ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + "\n"


def page_of(folder):
    return Reader((folder / "report.html").read_text(encoding="utf-8"))


@pytest.fixture
def copy(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def reported(folder, capsys, **settings):
    """The page of a run, with other words in its config.json."""
    config = json.loads((folder / "config.json").read_text())
    command = settings.pop("command", config["command"])
    text = json.dumps(config | dict(command=command, train=config["train"] | settings))
    (folder / "config.json").write_text(text)
    code, out, err = call(f"--report {folder}", capsys)
    assert code == 0 and f"wrote {folder / 'report.html'}" in out, err
    return page_of(folder)


def test_a_runs_page_holds_what_it_shows(copy, capsys):
    page = reported(copy, capsys)
    # nothing is fetched and nothing is executed
    assert all(address.startswith("data:image/png;base64,") for address in page.addresses)
    assert len(page.addresses) == 2 and "script" not in page.tags
    text = (copy / "report.html").read_text(encoding="utf-8")
    assert "http://" not in text and "https://" not in text
    row = results.result(copy)
    assert f"validation loss {row['val_loss']:.4f}" in page.text
    m, t = checkpoints.read_config(str(copy))
    for name in ("Curves", "Accuracy", "Answers", "Attention", "Settings", *vars(m), *vars(t)):
        assert f"\n{name}\n" in page.text
    low, high = results.wilson(sum(row["answers"]), len(row["answers"]))
    assert f"{low:.3f} to {high:.3f}, 12 asked" in page.text
    problems = to_data.load_data(t, m.block_size).problems
    for family, share in row["accuracy_by_family"].items():
        n = sum(problem["family"] == family for problem in problems[:12])
        low, high = results.wilson(round(share * n), n)
        assert f"\n{family}\n{share:.3f}\n{low:.3f} to {high:.3f}, {n} asked\n" in page.text
        assert 0 < n < 12
    assert page.text.count(" asked\n") == 1 + 3 + len(row["accuracy_by_problem"])
    assert problems[0]["messages"][-1]["content"] in page.text
    # where it looks in the question, without the answer
    _, tokenizer = checkpoints.load(str(copy))
    asked = md.prompt_ids(tokenizer, problems[0]["messages"])[: report.LOOKED_AT]
    tokens = [console.visible(tokenizer.decode([i])) for i in asked]
    assert f"columns are looked at: {' '.join(tokens)}\n" in page.text
    # numbers stand at the right, words at the left
    assert f'<td>all</td><td class="number">{row["accuracy"]:.3f}</td>' in text


def test_a_task_has_no_answers_but_attention(solved, tmp_path, capsys, kept):
    page = reported(shutil.copytree(solved, tmp_path / "run"), capsys)
    assert "\nAttention\n" in page.text and "\nAnswers\n" not in page.text
    assert len(page.addresses) == 2 and "accuracy 1.000" in page.text


def test_what_strangers_wrote_is_text_and_data_that_is_not_here_costs_the_examples(
    copy, capsys, kept
):
    command, name = "<script>alert(1)</script> \x1b[31m &amp;", '"><img src=x onerror=alert(1)>'
    page = reported(copy, capsys, command=command, name=name, data=["someone/somewhere"])
    assert "No examples and no attention: its data is to come from a hub" in page.text
    assert "\nCurves\n" in page.text and len(page.addresses) == 1 and "script" not in page.tags
    text = (copy / "report.html").read_text(encoding="utf-8")
    assert html.escape("<script>alert(1)</script>") in text and "\x1b" not in text


@pytest.mark.parametrize("change", [dict(data=("mine.py",)), dict(loader="mine.py")], ids=str)
def test_a_page_executes_no_code_of_ones_own(change, tmp_path, monkeypatch):
    """Not even what this process may execute, as after a run of it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("raise SystemExit('executed')")
    monkeypatch.setattr(own_code, "NAMED", {"mine.py"})
    m, t = configs.make("laptop")
    data, why = report.data_of(tmp_path, dataclasses.replace(t, **change), m, None)
    assert data is None and why.startswith("its data is made by code of one's own, which a report")


def test_data_that_has_changed_since_is_not_shown_as_what_was_asked(tmp_path, capsys, kept):
    """Other problems under the same name were never asked; attention is told to be to the new."""
    path, folder = tmp_path / "my.jsonl", tmp_path / "run"
    line = f"--data {path} --preset laptop --n_layers 1 --d_model 16 --n_heads 2 --steps 2"
    line += " --warmup_steps 1 --block_size 60 --tokenizer_size 300 --eval_problems 4"
    line += f" --out_dir {tmp_path} --name run"

    def write(more):
        rows = [dict(question=f"{i} + {more} ?", answer=f"so #### {i + more}") for i in range(80)]
        path.write_text("\n".join(json.dumps(row) for row in rows))

    write(1)
    assert call(line, capsys)[0] == 0
    for more, headings in ((1, True), (2, False)):
        write(more)
        assert call(f"--report {folder}", capsys)[0] == 0
        page = page_of(folder)
        assert ("\nAnswers\n" in page.text) == ("\nAttention\n" in page.text) == headings
        assert ("no attention: its data has changed since." in page.text) != headings
        code, out, _ = call(f"--attention {folder} --out_dir {tmp_path}", capsys)
        said = f"note: the data of {folder} has changed since it was trained; "
        assert code == 0 and (said in out) != headings


def test_a_grids_page_has_its_table_and_figures(tmp_path, capsys, in_this_process):
    line = "--n_layers 1 2 --seed 0 1 --d_model 16 --n_heads 2 --steps 2 --warmup_steps 1"
    line += " --max_rows 60 --batch_size 2 --grad_accum 1 --eval_blocks 2 --eval_problems 2"
    assert call(f"{line} --watch_problems 0 --out_dir {tmp_path}", capsys)[0] == 0
    (folder,) = tmp_path.glob("grid_*")
    about = json.loads((folder / "summary.json").read_text())
    about["differences"] += ["2 layers − 1 layer: -0.1", "<b>"]
    (folder / "summary.json").write_text(json.dumps(about))
    assert call(f"--report {folder}", capsys)[0] == 0
    page = page_of(folder)
    mean, half = about["table"][0]["val_loss"]
    assert re.search(rf"{mean:.3g} ± {half:.3g}", page.text) and "4 runs." in page.text
    assert len(page.addresses) == len(list(folder.glob("*.png"))) >= 1
    assert "\nFigures\n" in page.text and "2 minus n_layers 1: " in page.text
    assert "\n2 layers − 1 layer: -0.1\n<b>\n" in page.text


def test_what_has_no_report_gets_one_line(copy, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (copy / "log.jsonl").write_text("")
    for words, said in (
        ([f"{tmp_path}/empty"], "holds neither a run nor a grid's summary.json"),
        ([f"{tmp_path}/none"], "none is not there; give a run's folder"),
        ([f"{copy}"], "has no evaluation yet"),
        ([f"{copy}", "--lr", "1"], "--lr has no effect with --report"),
        ([""], "--report was given an empty value"),
    ):
        code, _, err = call(["--report", *words], capsys)
        assert code == 2 and said in err and err.count("\n") == 1, words
