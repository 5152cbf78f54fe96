"""A training loop over Tinker's public client calls, where the cookbook's own has no seam."""
