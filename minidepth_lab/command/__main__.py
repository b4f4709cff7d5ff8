"""python -m minidepth_lab.command, and python -m minidepth where the project is installed."""

from minidepth_lab.command import main

main()
