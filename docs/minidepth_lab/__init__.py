"""What we ask of models: one file per question. See find.py for what a study may hold."""
