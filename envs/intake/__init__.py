"""The intake of users' data: files, rows, tables, numbers, times, names and texts, for all worlds."""
