"""Python imports this at its start, where this folder is on its path."""

import os
import signal
import sys
from pathlib import Path

if "REHEARSAL" in os.environ:
    sys.path.append(str(Path(__file__).parents[3]))
    from tests.rehearsal import stand_ins

    # A shell starts what runs in its background deaf to interrupts, and all that is started there.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    stand_ins.expect()
