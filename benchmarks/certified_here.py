"""Certify targets in this process: quick, without the checks that need one of their own.

    python -m benchmarks.certified_here targets.txt certificates

For graders whose import alone takes seconds, of which `tokengym certify` starts several processes.
The settings are those of the public table.
"""

import argparse
import re
from pathlib import Path

from tokengym.agents.certify.bench import CertifySettings
from tokengym.agents.certify.certificate import certify
from tokengym.agents.certify.page import save
from tokengym.agents.certify.sources import open_source
from tokengym.agents.settings import name_values

SETTINGS = CertifySettings(tasks=8, strategies=30, replies=600, drawn=40, patience=1800.0)


def main() -> None:
    """Certify the targets of a file, with their options behind them, into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", type=Path)
    parser.add_argument("out", type=Path)
    chosen = parser.parse_args()
    for line in filter(None, map(str.strip, chosen.targets.read_text().splitlines())):
        target, *pairs = map(str.strip, line.split("--option"))
        options = name_values(pairs, "--option")
        made = certify(open_source(target, options), target, SETTINGS, options=options)
        save(made, chosen.out / re.sub(r"[^\w.-]+", "_", line))
        told = [found for found in made.findings if found.counts]
        print(f"{line}: {len(told)} of {len(made.findings)} checks fail", flush=True)


if __name__ == "__main__":
    main()
