"""The pure half: tasks, turns, worlds, grammar, seeding and errors. Knows no tokens and no files."""
