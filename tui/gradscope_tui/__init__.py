"""The terminal UI of gradscope: a face of `gradscope.inspect`, in Textual.

Only :func:`gradscope_tui.app.run_app` is meant for others; it blocks until the person leaves.
"""
