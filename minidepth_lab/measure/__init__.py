"""What is measured of runs and of trained models, and what was predicted."""
