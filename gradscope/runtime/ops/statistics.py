"""Placeholder while being written."""
