"""Recordings as a Parquet dataset: for questions in SQL over long runs and many ranks.

- :mod:`~.lake_schema`: the tables, their columns and their version
- :mod:`~.lake_export`: from recordings to files, while the program runs
- :mod:`~.lake_query`: questions, answered by DuckDB
"""
