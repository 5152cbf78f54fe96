"""Analysis: certificates of levels, ties and group sizes, exploits, and the reports of runs."""
