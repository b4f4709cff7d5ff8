"""What is said of the predictions of `reread`: each falls when the runs it is about say so."""

import pytest

from minidepth_lab import reread_verdicts
from minidepth_lab.reread_verdicts import (
    EIGHT,
    FOUR,
    LOOP,
    ONE,
    OWN,
    OWN_LOOP,
    OWN_WIDE,
    TWELVE,
    TWO,
    WIDE,
)
from minidepth_lab.studies import reread

A, BARE, FRESH = "reread", "reread/no-dropout", "reread/fresh"
# (training loss at the end, validation loss at the end, and where the training loss is 3.2), of
# runs with which every prediction holds
HOLDS = {
    (A, 20, ONE): (2.9, 3.50, 3.70), (A, 20, OWN): (2.7, 3.45, 3.70),
    (A, 20, TWO): (2.8, 3.45, 3.65), (A, 20, FOUR): (2.75, 3.40, 3.61),
    (A, 20, EIGHT): (2.7, 3.32, 3.61), (A, 20, TWELVE): (2.65, 3.30, 3.60),
    (A, 20, LOOP): (2.9, 3.45, 3.60), (A, 20, OWN_LOOP): (2.9, 3.40, 3.61),
    (A, 20, WIDE): (1.4, 3.70, 3.80), (A, 20, OWN_WIDE): (2.3, 3.60, 3.75),
    (A, 40, ONE): (2.4, 3.90, 3.90), (A, 40, TWELVE): (1.9, 3.90, 3.90),
    (A, 80, ONE): (1.5, 5.00, 4.40), (A, 80, TWELVE): (0.5, 5.60, 4.35),
    (BARE, 20, ONE): (2.6, 3.50, 3.70), (BARE, 20, TWELVE): (2.3, 3.40, 3.60),
    (BARE, 20, LOOP): (2.9, 3.50, 3.65),
    (FRESH, 20, ONE): (2.9, 3.45, 3.70), (FRESH, 20, OWN): (2.7, 3.45, 3.70),
    (FRESH, 20, TWELVE): (2.7, 3.30, 3.60), (FRESH, 20, LOOP): (2.9, 3.55, 3.61),
}  # fmt: skip


def runs_of(train, val, middle):
    """Two runs of ten steps that differ by a little."""
    found = []
    for more in (0, 0.002):
        rows = [
            dict(step=1, train_loss_eval=9.0, val_loss=9.0),
            dict(step=4, train_loss_eval=3.2, val_loss=middle + more),
            dict(step=10, train_loss_eval=train + more, val_loss=val + more),
        ]
        lowest = min(row["val_loss"] for row in rows)
        found.append(dict(rows[-1], steps=10, best_val_loss=lowest, log=rows))
    return found


def verdicts_of(monkeypatch, **changes):
    """The names of the predictions that fall, in order, with some runs changed."""
    values = HOLDS | {key: changes["to"] for key in changes.get("of", ())}

    def stored(folder="reread"):
        return {(n, model): runs_of(*v) for (f, n, model), v in values.items() if f == folder}

    monkeypatch.setattr(reread, "stored", stored)
    return [row["name"] for row in reread_verdicts.verdicts() if not row["holds"]]


def test_every_prediction_has_its_row(monkeypatch, capsys):
    assert verdicts_of(monkeypatch) == []
    names = [row["name"] for row in reread_verdicts.verdicts()]
    assert list(dict.fromkeys(names)) == [f"M{n}" for n in range(1, 31)]
    reread_verdicts.show()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(names) and max(map(len, lines)) <= 84
    assert lines[0].split()[-3:] == ["2.65", "2.90", "holds"]


@pytest.mark.parametrize(
    "key, to, fallen",
    [
        ((A, 20, TWELVE), (2.91, 3.30, 3.60), ["M1", "M3", "M12"]),
        ((A, 20, TWELVE), (2.81, 3.30, 3.60), ["M1", "M12"]),  # below, but by less than 0.1
        ((A, 20, TWELVE), (2.65, 3.6, 3.60), ["M2", "M3", "M8", "M11", "M14", "M25", "M28"]),
        ((A, 80, TWELVE), (1.501, 5.60, 4.35), ["M4"]),  # one run of twelve above one of one layer
        ((A, 80, TWELVE), (0.5, 4.9, 4.35), ["M5", "M8"]),
        ((A, 80, TWELVE), (0.5, 5.6, 4.25), ["M6"]),
        ((A, 80, ONE), (1.5, 4.35, 4.40), ["M7"]),
        ((A, 40, TWELVE), (1.9, 4.6, 3.90), ["M8"]),
        ((A, 40, TWELVE), (1.9, 3.69, 3.90), ["M8"]),
        ((A, 20, LOOP), (2.9, 3.501, 3.60), ["M9"]),
        ((A, 20, WIDE), (1.4, 3.301, 3.80), ["M10", "M27"]),
        ((A, 20, OWN), (2.7, 3.301, 3.70), ["M11"]),
        ((A, 20, OWN), (2.76, 3.45, 3.70), ["M12"]),
        ((A, 20, OWN_LOOP), (2.9, 3.449, 3.61), ["M13"]),
        ((A, 20, OWN_LOOP), (2.9, 3.301, 3.61), ["M14"]),
        ((A, 20, OWN), (2.7, 3.45, 3.611), ["M15"]),
        ((A, 20, OWN_LOOP), (2.9, 3.40, 3.652), ["M16"]),
        ((BARE, 20, TWELVE), (2.3, 3.40, 3.701), ["M17"]),
        ((BARE, 20, LOOP), (2.9, 3.50, 3.701), ["M18"]),
        ((FRESH, 20, OWN), (2.7, 3.45, 3.602), ["M19", "M20"]),
        ((FRESH, 20, ONE), (2.9, 3.45, 3.611), ["M20"]),
        ((FRESH, 20, LOOP), (2.9, 3.55, 3.64), ["M21"]),
        ((FRESH, 20, LOOP), (2.9, 3.451, 3.61), ["M22"]),
        ((A, 20, TWO), (2.95, 3.45, 3.65), ["M23"]),
        ((A, 20, FOUR), (2.85, 3.40, 3.61), ["M23"]),
        ((A, 20, TWO), (2.8, 3.55, 3.65), ["M24"]),
        ((A, 20, FOUR), (2.75, 3.46, 3.61), ["M24"]),
        ((A, 20, EIGHT), (2.7, 3.36, 3.61), ["M25"]),
        ((A, 20, TWO), (2.8, 3.45, 3.59), ["M26"]),
        ((A, 20, TWO), (2.8, 3.45, 3.71), ["M26"]),
        ((A, 20, FOUR), (2.75, 3.40, 3.63), ["M26"]),
        ((A, 20, EIGHT), (2.7, 3.32, 3.57), ["M26"]),
        ((A, 20, OWN_WIDE), (2.3, 3.699, 3.75), ["M27"]),
        ((A, 20, OWN_WIDE), (2.3, 3.301, 3.75), ["M28", "M29"]),
        ((A, 20, OWN_WIDE), (2.3, 3.44, 3.75), ["M29"]),
        ((A, 20, OWN_WIDE), (2.3, 3.60, 3.701), ["M30"]),
        ((A, 20, ONE), (2.9, 3.50, 3.752), ["M30"]),
    ],
)
def test_a_prediction_falls_with_the_runs_that_it_is_about(key, to, fallen, monkeypatch):
    assert verdicts_of(monkeypatch, of=[key], to=to) == fallen
