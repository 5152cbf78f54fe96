"""A world as an environment of Gymnasium, for one agent, or of PettingZoo, for several."""
