"""The debugger session: stopping a program inside its backward passes, looking, changing, going on and back."""
