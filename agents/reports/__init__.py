"""Reports for terminal and page: their tables, charts and texts, and blocks of Markdown pages."""
