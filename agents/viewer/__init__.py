"""The viewer: runs, evaluations, studies as pages, served on loopback or written as one file.

Text of models is untrusted. Pages get it as data and show it as text; they run no code but the
files in `static`, talk to nobody but the server they came from, and the server reads nothing but
the runs it was given.
"""

from tokengym.agents.viewer.library import open_runs
from tokengym.agents.viewer.pages import REPORT, index_page, whole_page, write_page
from tokengym.agents.viewer.server import Viewer

__all__ = ["REPORT", "Viewer", "index_page", "open_runs", "whole_page", "write_page"]
