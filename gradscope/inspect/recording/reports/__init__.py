"""Reports of recordings: pages, plots, tables, comparisons and exports.

- :mod:`~.html_report`: one page that needs nothing else
- :mod:`~.recording_html`: a recording in a notebook
- :mod:`~.heatmap`: gradient norms by module and iteration
- :mod:`~.text_view`: ``gradscope view`` as text
- :mod:`~.series_view`: how gradients went over a whole run
- :mod:`~.recording_prompt`: a recording at a prompt
- :mod:`~.recorded_diagnosis`: ``gradscope doctor RECORDING``
- :mod:`~.recording_difference`: where two recordings part
- :mod:`~.perfetto`: a time line for Perfetto
- :mod:`~.parquet`: nodes as a Parquet file
"""
