"""Data as the laboratory makes it."""

import zlib
from dataclasses import dataclass, field

import numpy as np
from torch import nn

import minidepth as md


@dataclass
class Data(md.Data):
    """minidepth.Data that may come from several sources, and knows what it was made with."""

    val_by_source: dict = field(default_factory=dict)  # as `val`, where there are several sources
    sizes: tuple = ()  # all that were used, defaults too, for config.json
    eval_blocks: int = 64  # of each source that are measured, so many at a time:
    batch_size: int = 16
    problem_sources: list = field(default_factory=list)  # of each problem, if there are several
    at_end: bool = False  # whether the last step has been drawn: a last test may be another one
    bytes_per_target: float = 0.0  # of the blocks that are measured; 0: not known

    def complete(self, record: dict) -> None:
        """Add to a record of the log what follows from it."""
        by_source = {}
        for source, right in zip(self.problem_sources, record.get("answers", ())):
            by_source.setdefault(source, []).append(right)
        if by_source:
            shares = {source: sum(each) / len(each) for source, each in by_source.items()}
            record["accuracy_by_source"] = shares
        if self.bytes_per_target:
            record["val_loss_per_byte"] = record["val_loss"] / self.bytes_per_target

    def evaluate(self, model: nn.Module) -> dict:
        """The loss by source, where there are several."""
        if not self.val_by_source:
            return {}
        losses = {
            name: md.mean_loss(model, part, self.eval_blocks, self.batch_size)
            for name, part in self.val_by_source.items()
        }
        return dict(val_loss_by_source=losses)

    def fingerprint(self) -> list[int]:
        """Two numbers that tell this data from other data, for resuming: of its blocks, and of
        what else it is measured by."""
        crcs = super().fingerprint()
        for pair in self.val_by_source.values():
            for part in pair:
                crcs[1] = zlib.crc32(np.ascontiguousarray(part), crcs[1])
        return crcs
