"""Real questions: reading files, refusing what leaks the answer, splitting by event and time."""
