"""The pure half: tasks, turns, worlds, grammar, seeding and errors; no tokens and no files."""
