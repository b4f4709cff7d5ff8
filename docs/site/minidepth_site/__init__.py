"""What pages import to show more than text and figures: see widgets.py."""
