"""What tasks are made of: their arguments, their data, and files of one's own."""
