"""What a step trains on: rollouts, demonstrations, preferences, and what is made of them."""
