"""The screen in a browser, for ``gradscope serve``; it stands on textual-serve, an optional dependency.

- :mod:`~.page_server`: serves a command of gradscope's on loopback to who knows the token
- ``app_index.html``: the page, which loads nothing from elsewhere
"""
