"""The widgets of the terminal UI: one file each."""
