"""What pages import to show more than text and figures: see widgets.py."""

import html


def elsewhere(address):
    """What a downloaded notebook shows in place of a box, as HTML; `address` is that of its page,
    "" if that is not known."""
    page = f'<a href="{html.escape(address)}">the page of this notebook</a>'
    place = page if address else "the site"
    return f"<p>A box that answers to the reader stands here on {place}.</p>"
