"""The laboratory: what one asks of many runs, or of a trained one.

tasks/ has a file for each task, studies/ one for each question; the other files are machinery.
registry.py says where a name on the command line leads.
"""
