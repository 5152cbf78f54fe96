"""The check of levels: what named policies earn on them, the laws of every world, the ladder."""
