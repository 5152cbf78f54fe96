"""Run folders: their files, the steps and results recorded in them, and collapse."""
