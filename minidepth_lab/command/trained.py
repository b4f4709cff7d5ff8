"""What the command asks of trained runs: scores, attention, the mechanism, an export."""

from minidepth_lab.base import configs
from minidepth_lab.command import flags
from minidepth_lab.keep import checkpoints, export
from minidepth_lab.measure import score
from minidepth_lab.show import attention, report, runs


def look(call):
    """Do the one thing that a flags.Call asks of trained runs."""
    a, changes = call.flags, call.changes
    out_dir = changes.get("out_dir", configs.TrainConfig.out_dir)
    if call.doing in ("attention", "compare"):  # which write there
        flags.check_place("out_dir", out_dir)
    if a["runs"]:
        filters = {name: values for name, values in call.axes.items() if name != "out_dir"}
        return runs.show(out_dir, filters, a["sort"])
    if a["compare"]:
        return runs.compare(a["compare"], out_dir)
    if a["report"]:
        print(f"wrote {report.write(a['report'])}")
        return None
    asked = a["mechanism"] or a["score"] or a["attention"] or a["export_hf"][0]
    for folder in asked if isinstance(asked, list) else [asked]:
        if which := checkpoints.describe_weights(folder):
            print(which)
    if a["mechanism"]:
        attention.show_mechanism(a["mechanism"])
    elif a["score"]:
        sources = changes.get("data", ("embedded",))
        most = changes.get("max_rows", 0)
        configs.check_fields(configs.TrainConfig(max_rows=most))
        score.show_score(a["score"], sources, most)
    elif a["attention"]:
        attention.show_attention(a["attention"], out_dir)
    else:
        run_dir, out_dir = a["export_hf"]
        export.export_hf(run_dir, out_dir)
        print(f"wrote {out_dir}; load it with AutoModelForCausalLM.from_pretrained")
