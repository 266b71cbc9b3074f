"""The Debug Adapter Protocol: an editor debugs a backward in another process.

- :mod:`~.framing`: messages on a stream
- :mod:`~.request_arguments`: the fields of requests, by their types
- :mod:`~.adapter`: a session: which verb of a :class:`~gradscope.inspect.wire.client.RemoteDebugger` answers which
  request, and what the editor is told
- :mod:`~.stop_points`: the editor's breakpoints, and those of the program that they stand for
- :mod:`~.stack`: the stack, from the current node to the loss and the line that called ``backward()``
- :mod:`~.variables`: scopes, and tensors that are unfolded by slices
- :mod:`~.completions`: what may follow what is typed in the editor's console
- :mod:`~.editor_server`: a port for editors, each with a session of its own
- :mod:`~.debugged_ranks`: the ranks of a program, each with its stack and its variables
- :mod:`~.editor_terminal`: a program in a terminal that the editor opens for it
"""
