"""Indexing, gathering and scattering.

- :mod:`~.indexing`: ``tensor[...]`` and ``tensor[...] = value``
- :mod:`~.gather_and_scatter`: ``gather``, ``scatter``, ``index_select``, ``index_add``
- :mod:`~.scatter_reduce`: ``scatter_reduce`` and ``index_reduce``
- :mod:`~.take_and_put`: elements by their position: ``take``, ``put_``, ``take_along_dim``
- :mod:`~.places`: large arrays' elements along an axis, by positions in one flat array
- :mod:`~.accumulate_at`: ``ufunc.at`` for every dtype
"""
