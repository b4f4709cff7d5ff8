"""Figures, curves and reports."""
