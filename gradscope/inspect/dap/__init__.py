"""The Debug Adapter Protocol: an editor debugs a backward in another process.

- :mod:`~.framing`: messages on a stream
- :mod:`~.adapter`: which verb of a :class:`~gradscope.inspect.wire.client.RemoteDebugger` answers which request
"""
