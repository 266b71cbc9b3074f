"""Graphs as pictures and files.

:mod:`.picture` says what each box reads; :mod:`.dot`, :mod:`.svg` and :mod:`.mermaid` draw it, and :mod:`.html` with
the files in ``page/`` makes a page of it. :mod:`.plain` turns nodes into numbers and text for :mod:`.graphml` and
:mod:`.node_link`. :func:`~.formats.write_graph` chooses by a file's name.
"""

from __future__ import annotations
