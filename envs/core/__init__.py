"""The pure core: tasks, turns, worlds, grammar, seeding, errors, user tables; no tokens."""
