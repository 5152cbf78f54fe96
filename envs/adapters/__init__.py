"""A world as an environment of other libraries: Gymnasium for one agent, PettingZoo for several."""
