"""The wire between a program and the fronts that debug it: typed messages over a socket.

The program's side is a :class:`~.server.DebugServer` in front of a :class:`~gradscope.inspect.Debugger`; the front's is
a :class:`~.client.RemoteDebugger`, which has the same verbs and reads the same records.

- :mod:`~.messages`: every message, with its fields; ``docs/protocol.md`` is made of it
- :mod:`~.verb_table`: which method of a debugger answers which request
- :mod:`~.channel`: frames on a socket
- :mod:`~.handshake`: versions, and the proof that both sides know the token
- :mod:`~.addresses`: where programs listen, and for whom
- :mod:`~.server`: a debugger that fronts talk to
- :mod:`~.client`: a debugger in another process
- :mod:`~.remote_nodes`: the nodes of a backward in another process, by pages
- :mod:`~.remote_errors`: errors that come over the wire
- :mod:`~.standing`: where a program stands, as a debugger sends it whenever that changes
- :mod:`~.served_debugger`: debuggers that stop their program only while somebody looks
- :mod:`~.process_groups`: timeouts of ``torch.distributed``, which are long while somebody looks
- :mod:`~.program_process`: a script in a process that a front starts: its terminal, its end
- :mod:`~.process_prompt`: a prompt on such a script
- :mod:`~.attached_prompt`: a prompt on a program that was running before
- :mod:`~.listening`: ``gi.listen()``: a program that runs, and fronts that come and go
- :mod:`~.set_trace`: ``gi.set_trace()``: at the terminal, or by whoever attaches
- :mod:`~.reference`: the protocol as a page
- :mod:`~.stopped_process`: a program that SIGSTOP holds, and how it is let go on
"""
