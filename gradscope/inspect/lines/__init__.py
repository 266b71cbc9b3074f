"""Line mode: the debugger at a prompt, from ``-c`` and from a file."""
