"""The name of a run's folder."""

import dataclasses
import re
import zlib

from minidepth_lab.base import configs

# what tells runs apart first where not all of their settings have a place in a name, and what
# tells little: how a run is measured and kept
TELLING = ("n_layers", "n_loops", "seed", "tokenizer_size", "data", "sizes", "d_model", "lr")
TELLING += ("steps", "init_from", "tokenizer")
SHORT = dict(tokenizer_size="words")  # else it alone would fill a third of a name
QUIET = ("eval_every", "eval_blocks", "eval_problems", "watch_problems", "save_every", "keep")
NOT_NAMED = ("out_dir", "name", "device", "report_to", "minutes")
UNFIT = r"[^\w.+-]"  # in a name: what not every file system takes
LONGEST_NAME = 59  # characters of ASCII: a name is read, typed, and shown in a list


def run_name(preset: str, changes: dict) -> str:
    """A run's folder from the preset and whatever was changed, so that two runs do not meet, unless
    they differ in characters that no name can have, or in whether a + parts two values or stands in
    one, and the same run of two grids does. If it would be too long, it says what tells most, of
    paths and lists the end or the beginning, and has a checksum of all."""
    known = [
        f.name
        for kind in (configs.ModelConfig, configs.TrainConfig)
        for f in dataclasses.fields(kind)
    ]
    values = {}  # {setting: the parts of its value}, the one there is or those of a list
    for name in known:
        if name in changes and name not in NOT_NAMED:
            value = changes[name]
            values[name] = value if isinstance(value, (tuple, list)) else (value,)
    parts = [preset]
    for name, value in values.items():
        parts.append(f"{name}-{'+'.join(str(part) for part in value)}")
    name = "_".join(re.sub(UNFIT, "-", part).strip("-") for part in parts)
    if len(name.encode()) <= LONGEST_NAME:
        return name
    checksum = f"_{zlib.crc32(name.encode()):08x}"
    left = LONGEST_NAME - len(checksum)
    kept = re.sub(UNFIT, "-", preset).encode()[:left].decode(errors="ignore")  # no half character
    left -= len(kept.encode())
    short = {}  # {setting: the part of the name that says its value}
    for name, value in values.items():
        text = "+".join(str(part) for part in value)
        if value and isinstance(value[0], str) and re.search(r"[/\\]", value[0]):
            last = [part for part in re.split(r"[/\\]+", value[0]) if part not in ("", "tokenizer")]
            text = last[-1] if last else "root"  # of a path its last part
        short[name] = f"_{SHORT.get(name, name)}-{re.sub(UNFIT, '-', text).strip('-')[:24]}"
    loud = [name for name in known if name not in (*TELLING, *QUIET)]
    chosen = set()
    for name in (*TELLING, *loud, *QUIET):
        if name in short and len(short[name].encode()) <= left:
            chosen.add(name)
            left -= len(short[name].encode())
    return kept + "".join(short[name] for name in known if name in chosen) + checksum


def name_of(m: configs.ModelConfig, t: configs.TrainConfig) -> str:
    """run_name() of settings that say neither preset nor name: the one of this file's presets that
    they are nearest to, and what differs from it."""
    values = dataclasses.asdict(m) | dataclasses.asdict(t)
    defaults = dataclasses.asdict(configs.ModelConfig()) | dataclasses.asdict(configs.TrainConfig())
    differing = {}
    for preset in ("report", "laptop"):
        own = defaults | configs.PRESETS[preset]
        differing[preset] = {k: v for k, v in values.items() if v != own[k]}
    preset = min(differing, key=lambda name: len(differing[name]))
    return run_name(preset, differing[preset])
