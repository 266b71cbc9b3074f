"""``python -m gradscope``: the ``gradscope`` command."""

import sys

from gradscope.cli import main

if __name__ == "__main__":
    sys.exit(main())
