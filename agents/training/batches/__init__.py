"""Training data of a step, made of rollouts, demonstrations or preferences."""
