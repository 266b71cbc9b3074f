"""Running a program under an instrument: a script, a module or a function, as python runs it."""
