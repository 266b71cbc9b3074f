"""The file of a recording.

- :mod:`~.schema`: its tables, their version, how a file is recognised
- :mod:`~.recording_file`: the file while it is written, wherever it goes
- :mod:`~.batch_writer`: what happened, written into it
- :mod:`~.budget`: what goes where the file has too many bytes or nodes, or is too old
- :mod:`~.file_watch`: moved, deleted, replaced files
- :mod:`~.reader`: ``gi.open_recording``
- :mod:`~.untrusted_database`: reading a database that a stranger may have made
- :mod:`~.recording_records`: records of runs, iterations, backwards, events
- :mod:`~.recording_columns`: many nodes in a few arrays
- :mod:`~.step_rows`: what each rank held at an optimizer's step
- :mod:`~.run_series`: norms and losses over a whole run, in room that does not grow
- :mod:`~.series_samples`: what of a batch goes into them
- :mod:`~.node_pages`: pages of nodes, packed and unpacked
- :mod:`~.node_descriptions`: what the nodes of all iterations share, while a page needs it
- :mod:`~.iteration_thinning`: which iterations go first
- :mod:`~.record_decoder`: from rows back to the debugger's records
- :mod:`~.compiled_calls`: what has run inside of what torch.compile has compiled
- :mod:`~.array_blobs`: arrays as bytes
"""
