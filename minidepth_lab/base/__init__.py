"""What all rooms share: settings, what a terminal is told, the machine, data."""
