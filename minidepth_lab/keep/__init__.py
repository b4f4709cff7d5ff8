"""My run: its careful folder, resuming, best weights, lists of runs."""
