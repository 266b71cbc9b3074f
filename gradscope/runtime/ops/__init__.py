"""Every operator, one file per family. :mod:`registry` says how one is declared."""
