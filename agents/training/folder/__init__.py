"""What a run folder holds: its files, the steps and results recorded in them, and collapse."""
