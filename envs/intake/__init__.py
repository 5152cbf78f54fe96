"""The intake of users' data for all worlds: files, rows, tables, numbers, times, names, texts."""
