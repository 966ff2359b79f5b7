"""Passes: pure functions from graph to graph; the argument is as it was."""
