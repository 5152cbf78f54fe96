"""Training jobs: settings, run folder, watching, evaluation before and after, report."""
