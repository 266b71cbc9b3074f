"""A terminal as tests need it: what stands in each cell, and how it looks."""

from __future__ import annotations

import re

from rich.cells import cell_len

_SEEN_ON_BLANKS = {"4", "7", "9", "21", "53"}
_SWITCHES_OFF = {
    "22": "1 2",
    "23": "3",
    "24": "4 21",
    "25": "5 6",
    "27": "7",
    "28": "8",
    "29": "9",
    "54": "51 52",
    "55": "53",
}
_PLAIN = (frozenset(), "39", "49")


class Terminal:
    """What stands on a terminal to which escape sequences are written.

    Attributes
    ----------
    cells : dict
        By row and column the character, which half of it, and its look: the attributes that are on, the color of its
        ink and that of its ground. A blank has no ink.
    look : tuple
        How it would write now.
    """

    def __init__(self):
        self.cells = {}
        self.look = _PLAIN

    def write(self, data):
        row = column = 0
        for move_row, move_column, codes, character in re.findall(r"\x1b\[(\d+);(\d+)H|\x1b\[([\d;]*)m|(.)", data):
            if move_row:
                row, column = int(move_row) - 1, int(move_column) - 1
            elif character:
                width = cell_len(character)
                for half in range(width):
                    self.cells[row, column + half] = (character, half, self._look_of(character))
                if not width and column:  # it belongs to the one before
                    before, half, was = self.cells[row, column - 1]
                    self.cells[row, column - 1] = (before + character, half, was)
                column += width
            else:
                self._obey(codes.split(";"))

    def _look_of(self, character):
        on, _, ground = self.look
        if character.isspace() and not on & _SEEN_ON_BLANKS:
            return frozenset(), "", ground
        return self.look

    def _obey(self, codes):
        on, ink, ground = self.look
        while codes:
            code, *codes = codes
            if code in ("38", "48"):
                length = {"2": 4, "5": 2}[codes[0]]
                code, codes = ";".join([code, *codes[:length]]), codes[length:]
            first = code.split(";")[0]
            if code in ("", "0"):
                on, ink, ground = _PLAIN
            elif code in _SWITCHES_OFF:
                on = on - set(_SWITCHES_OFF[code].split())
            elif first in ("38", "39") or re.fullmatch("[39][0-7]", first):
                ink = code
            elif first in ("48", "49") or re.fullmatch("(4|10)[0-7]", first):
                ground = code
            else:
                on = on | {code}
        self.look = on, ink, ground
