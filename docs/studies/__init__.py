"""What we ask of models: one file a question. See find.py for what a study may hold."""
