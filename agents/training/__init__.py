"""Training jobs: settings, run folder, monitoring, evaluation before and after, report."""
