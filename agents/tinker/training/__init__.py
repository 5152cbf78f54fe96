"""Training jobs: settings, the run folder, watching a run, evaluation before and after, the report."""
