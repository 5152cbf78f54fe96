"""Reports for terminal and page: their tables, charts and texts."""
