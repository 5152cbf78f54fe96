"""The faces of a world: Gymnasium for one agent, PettingZoo for several."""
