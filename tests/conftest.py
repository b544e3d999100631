"""What holds for all tests.

In continuous integration property tests draw the same examples every time. Ctrl-C is heard even
where a shell has started the tests in the background, with interrupts ignored.
"""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# No deadline: how long an example takes says more about the machine than about the code.
settings.register_profile("ci", derandomize=True, print_blob=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")

signal.signal(signal.SIGINT, signal.default_int_handler)
