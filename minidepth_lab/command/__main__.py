"""python -m minidepth_lab.command"""

import sys

from minidepth_lab.command import main

sys.exit(main())
