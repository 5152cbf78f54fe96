"""The pure half: tasks, turns, worlds, grammar, seeding, errors, and a user's tables; no tokens."""
