"""Recipes, the loss, the schedule and the training loop."""
