"""Shapes, views, joining and splitting, copies.

- :mod:`~.reshape`: ``view``, ``reshape``, ``transpose``, ``expand`` and other views
- :mod:`~.slice_and_cat`: ``select``, ``narrow``, ``split``, ``cat``, ``stack``
- :mod:`~.stack_and_split`: the same by other names: ``hstack``, ``tensor_split``, ``meshgrid``
- :mod:`~.flip_and_repeat`: flips, rolls, repetitions, diagonals and triangles
- :mod:`~.as_strided`: views by sizes and strides
- :mod:`~.view_copies`: ``*_copy``: what a view shows, in memory of its own
- :mod:`~.copy_and_cast`: ``clone``, ``to``, ``copy_``, ``fill_``
- :mod:`~.resize_and_set`: ``resize_``, ``set_``, ``apply_``, ``map_``
- :mod:`~.tensor_information`: questions about a tensor, as functions
"""
