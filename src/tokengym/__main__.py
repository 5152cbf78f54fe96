"""The command: `python -m tokengym`, or `python3 src/tokengym` in a checkout without set-up."""

import runpy
import sys
from pathlib import Path

if __package__:
    from tokengym.agents.__main__ import main

    main()
else:
    # The folder was run, by a Python that need not have the package or anything else installed.
    start = Path(__file__).resolve().parents[2] / ".ci" / "start"
    if not start.is_file():
        sys.exit("no checkout around this folder: use `python -m tokengym`")
    runpy.run_path(str(start), run_name="__main__")
