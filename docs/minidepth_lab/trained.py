"""What the command asks of trained runs: scores, attention, the mechanism, an export."""

import minidepth as md
from minidepth_lab import export, inspect, score


def look(a, changes):
    """Do the one thing that the flags `a` ask of trained runs; `changes` are settings given."""
    asked = a["mechanism"] or a["score"] or a["attention"] or a["export_hf"][0]
    for folder in asked if isinstance(asked, list) else [asked]:
        if which := md.describe_weights(folder):
            print(which)
    if a["mechanism"]:
        inspect.show_mechanism(a["mechanism"])
    elif a["score"]:
        sources = changes.get("data", ("embedded",))
        most = changes.get("max_rows", 0)
        md.check_fields(md.TrainConfig(max_rows=most))
        score.show_score(a["score"], sources, most)
    elif a["attention"]:
        out_dir = changes.get("out_dir", md.TrainConfig.out_dir)
        inspect.show_attention(a["attention"], out_dir)
    else:
        run_dir, out_dir = a["export_hf"]
        export.export_hf(run_dir, out_dir)
        print(f"wrote {out_dir}; load it with AutoModelForCausalLM.from_pretrained")
