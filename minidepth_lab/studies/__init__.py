"""What we ask of models: one file per question. What a study may hold is in registry.py."""
