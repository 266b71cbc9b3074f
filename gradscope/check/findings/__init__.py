"""What a rule has found, as every report tells it.

- :mod:`~.finding_records`: records without a tensor or a node in them
- :mod:`~.finding_codes`: GS101 and the others, each with a bad and a good program
- :mod:`~.finding_parts`: sentences and places that several rules use
- :mod:`~.source_fixes`: the smallest change of the user's line
"""
