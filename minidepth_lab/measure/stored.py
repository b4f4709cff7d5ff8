"""Where the project keeps what it has stored: its experiments and its data."""

import pathlib

HERE = pathlib.Path(__file__).resolve().parents[1]


def stored_folder(name):
    """The folder `results` or `data`: an installation has it within this package, the project in
    docs/."""
    installed = HERE / "stored" / name
    return installed if installed.is_dir() else HERE.parent / "docs" / name
