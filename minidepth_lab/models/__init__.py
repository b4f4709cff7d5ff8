"""My model: its variants, weights by hand, export."""
