"""A tensor as a table, a heat map or a histogram; compared with another, copied, saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil, isfinite, isnan, isqrt, prod, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.style import Style
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.geometry import Region
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static

from gradscope.inspect.records.records import TensorSubject
from gradscope_tui.refusal import refuse
from gradscope_tui.terminal.pixel_graphics import Picture, PixelGraphics
from gradscope_tui.widgets.heat_map import LEGEND, PLAIN_LEGEND, heat_lines, heat_raster, magnitude_of
from gradscope_tui.widgets.histogram import HistogramAxis
from gradscope_tui.widgets.labels import short_value
from gradscope_tui.widgets.tensor_window import TensorWindow
from gradscope_tui.worker_thread import on_thread

if TYPE_CHECKING:
    from gradscope.inspect.records.records import TensorPage, TensorSummary
    from gradscope_tui.sessions.session_protocol import Session

__all__ = ["TensorScreen", "as_csv", "as_numpy"]

MOST_COPIED = 1 << 16
"""Numbers of a slice up to which it is copied."""

MOST_ZOOM = 4
"""Half blocks that a number of a small slice is wide and high."""

LEAST_DOT, MOST_DOT, MOST_DRAWN = 3, 48, 1 << 14
"""Dots of a picture that a number is wide and high, and numbers that are drawn at once: a picture is sent whole."""

_KEY = r"(?:^|(?<=  ))(?:\[ \]|\S+)(?= )"
"""A key in the line that tells what the keys do."""

_MODES = ("numbers", "heat map", "histogram")
_MEASURES = ("difference", "relative error")
_KEYS = {
    "numbers": "v Heat map  n Next NaN/Inf  > Largest  < Smallest  [ ] Slice  t Turn  c Compare  y Copy  Y CSV  s Save",
    "compared": "r Relative/difference  c Compare with…  v Heat map  n NaN  > Largest  [ ] Slice  y Copy  s Save",
}


class TensorGrid(Widget, can_focus=True):
    """The numbers that are seen; which, its screen says."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines: Sequence[Text] = ()

    def render_line(self, y: int) -> Strip:
        """Render one line."""
        width = self.size.width
        if y >= len(self.lines):
            return Strip.blank(width, self.rich_style)
        return Strip(self.lines[y].render(self.app.console)).crop_extend(0, width, None).apply_style(self.rich_style)


class TensorScreen(ModalScreen[None]):
    """Shows a tensor; the program answers for the part that is seen.

    Parameters
    ----------
    session : Session
        Where the tensor is.
    subject : TensorSubject
        The expression for it.
    title : str
        What to call it.
    other : str
        What is proposed to compare it with.
    graphics : PixelGraphics, optional
        Draws the heat map where the terminal draws pictures.
    """

    BINDINGS: ClassVar[list[Any]] = [
        Binding("escape,q,enter", "leave", "Close", show=False),
        Binding("j,down", "move(1, 0)", "Down", show=False),
        Binding("k,up", "move(-1, 0)", "Up", show=False),
        Binding("h,left", "move(0, -1)", "Left", show=False),
        Binding("l,right", "move(0, 1)", "Right", show=False),
        Binding("ctrl+d,pagedown,space", "page(1, 0)", "Half page down", show=False),
        Binding("ctrl+u,pageup", "page(-1, 0)", "Half page up", show=False),
        Binding("L", "page(0, 1)", "Half page right", show=False),
        Binding("H", "page(0, -1)", "Half page left", show=False),
        Binding("g,home", "move(-1_000_000_000, 0)", "First line", show=False),
        Binding("G,end", "move(1_000_000_000, 0)", "Last line", show=False),
        Binding("right_square_bracket", "slice(1)", "Next slice", show=False),
        Binding("left_square_bracket", "slice(-1)", "Slice before", show=False),
        Binding("t", "turn", "Other dimensions", show=False),
        Binding("v", "view", "Numbers, heat map, histogram", show=False),
        Binding("n", "find('not finite')", "Next NaN or infinity", show=False),
        Binding("greater_than_sign", "find('largest')", "Largest", show=False),
        Binding("less_than_sign", "find('smallest')", "Smallest", show=False),
        Binding("c", "ask('compare with ')", "Compare", show=False),
        Binding("r", "measure", "Difference or relative error", show=False),
        Binding("y", "copy('numpy')", "Copy as NumPy", show=False),
        Binding("Y", "copy('csv')", "Copy as CSV", show=False),
        Binding("s", "ask('save as ')", "Save as .npy", show=False),
    ]

    def __init__(
        self,
        session: Session,
        subject: TensorSubject,
        title: str,
        other: str = "",
        graphics: PixelGraphics | None = None,
    ) -> None:
        super().__init__()
        self.subject = subject
        self.window = TensorWindow(())
        self.mode = _MODES[0]
        self._session = session
        self._title = title
        self._other = other
        self._summary: TensorSummary | None = None
        self._page: list[list[Any]] = []
        self._question = ""
        self._problem = ""
        self._zoom = 1
        self._graphics = graphics

    def compose(self) -> ComposeResult:
        """Lay out the tensor between what is known of it and the keys."""
        with Vertical(id="tensor") as box:
            box.border_title = Text(self._title)
            yield Static(id="tensor-facts")
            yield TensorGrid(id="tensor-grid")
            yield Static(id="tensor-cell")
            yield Static(id="tensor-keys")
            yield Input(id="tensor-input", compact=True, select_on_focus=False)

    def on_mount(self) -> None:
        """Ask for the tensor."""
        self.query_one(TensorGrid).focus()
        self._load()

    def on_unmount(self) -> None:
        """Take the picture away."""
        if self._graphics is not None:
            self._graphics.show(None)

    def on_resize(self, event: events.Resize) -> None:
        """Show as much as there is room for now."""
        self.call_after_refresh(self._show)

    def show_anew(self) -> None:
        """Draw again: the terminal has said what it can draw."""
        self._show()

    # What the program is asked ---------------------------------------------------------------------------------------

    def _load(self) -> None:
        self.run_worker(self._read_all(self.subject), group="tensor", exclusive=True)

    async def _read_all(self, subject: TensorSubject) -> None:
        """Ask for the tensor in numbers, and then for what is seen of it."""
        self._summary = await self._ask(lambda: self._session.tensor_summary(subject))
        if self._summary is not None:
            if self.window.shape != self._summary.shape:
                self.window = TensorWindow(self._summary.shape)
            self._problem = ""
            self._fit()
            await self._read_page()

    async def _ask(self, question: Callable[[], Any]) -> Any:
        """Ask the program; what goes wrong is said on the screen."""
        try:
            return await on_thread(question)
        except Exception as error:
            known = isinstance(error, ValueError | TypeError | RuntimeError | OSError)
            self._problem = str(error) if known else f"{type(error).__name__}: {error}"
            self._draw()
            return None

    def _show(self) -> None:
        """Ask for what is seen now, and draw it."""
        if self._summary is None:
            self._draw()
            return
        self._fit()
        self.run_worker(self._read_page(), group="tensor", exclusive=True)

    async def _read_page(self) -> None:
        window, subject = self.window, self.subject
        if not window.empty and self.mode != "histogram":
            index, columns = window.index(), window.seen[1]
            page: TensorPage | None = await self._ask(lambda: self._session.tensor_page(subject, index))
            if page is None:
                return
            self._page = window.lines_of(page.values, len(columns))
        self._draw()

    def _fit(self) -> None:
        width, height = self.query_one(TensorGrid).size
        if self._draws is not None:
            wide, high = self._draws.cell
            self._zoom = self._dot(width * wide, height * high)
            self.window.fit(height * high // self._zoom, width * wide // self._zoom)
        elif self.mode == "heat map":
            self._zoom = self._zoom_in(2 * height, width)
            self.window.fit(height if self._plain else 2 * height // self._zoom, width // self._zoom)
        else:
            lines = self.window.extent[0]
            self.window.fit(height - 1, (width - len(str(lines)) - 1) // self._cell)

    def _zoom_in(self, height: int, width: int) -> int:
        """Return how many dots wide and high a number may be, so that the slice fits."""
        if self._plain or len(self.window.shape) < 2:
            return 1
        lines, columns = self.window.extent
        return max(1, min(MOST_ZOOM, height // max(1, lines), width // max(1, columns)))

    def _dot(self, width: int, height: int) -> int:
        """Return how many dots of a picture a number may be wide and high, so that the slice fits."""
        least = max(LEAST_DOT, ceil(sqrt(width * height / MOST_DRAWN)))
        if len(self.window.shape) < 2:
            fits = isqrt(width * height // max(1, prod(self.window.shape)))
        else:
            lines, columns = self.window.extent
            fits = min(height // max(1, lines), width // max(1, columns))
        return max(least, min(MOST_DOT, fits))

    @property
    def _draws(self) -> PixelGraphics | None:
        """What draws the heat map, where that is seen and the terminal draws pictures."""
        graphics = self._graphics
        return (
            graphics
            if graphics is not None and graphics.ready and self.mode == "heat map" and not self._plain
            else None
        )

    @property
    def _cell(self) -> int:
        """Cells that a number takes."""
        return 23 if self._summary is not None and self._summary.dtype.startswith("complex") else 11

    @property
    def _plain(self) -> bool:
        """Whether numbers are drawn without colours."""
        return self.app.no_color

    # What is drawn ---------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        if not self.is_mounted:
            return
        grid = self.query_one(TensorGrid)
        self.query_one("#tensor-facts", Static).update(self._facts())
        picture = self._picture(grid.content_region)
        grid.lines = self._drawn() if self._summary is not None and picture is None else ()
        if self._graphics is not None:
            self._graphics.show(picture)
        grid.refresh()
        self.query_one("#tensor-cell", Static).update(self._below())
        keys = _KEYS["compared" if self.subject.against else "numbers"]
        following = _MODES[(_MODES.index(self.mode) + 1) % len(_MODES)].capitalize()
        told = Text(f"Esc Close  {keys}".replace("Heat map", following))
        told.highlight_regex(_KEY, "bold")
        self.query_one("#tensor-keys", Static).update(told)

    def _picture(self, room: Region) -> Picture | None:
        """Return the heat map as a picture, where the terminal draws it."""
        graphics = self._draws
        if graphics is None or self._summary is None or self.window.empty or not self._page:
            return None
        raster = heat_raster(self._page, self._largest, self._marked, self._zoom)
        rows, columns = -(-raster.height // graphics.cell[1]), -(-raster.width // graphics.cell[0])
        return Picture(room.y, room.x, rows, columns, raster)

    def _facts(self) -> Text:
        summary, subject = self._summary, self.subject
        text = Text(subject.expression, "bold")
        if subject.against:
            text.append(f"  {subject.measure} from  ", "dim").append(subject.against)
        if summary is None:
            return text
        shape = " × ".join(map(str, summary.shape)) or "a single number"
        text.append(f"\n{summary.dtype}  {shape}")
        if summary.numel:
            text.append(f"   slice {self.window.title}" if len(summary.shape) > 1 else "")
        for name in ("norm", "mean", "std", "min", "max"):
            text.append(f"   {name} ", "dim").append(short_value(getattr(summary, name)))
        text.append("   zero ", "dim").append(f"{summary.zeros / max(1, summary.numel):.0%}")
        for name, count in (("NaN", summary.nans), ("Inf", summary.infs)):
            if count:
                text.append(f"   ‼ {name} {count}", "bold red")
        return text

    def _drawn(self) -> list[Text]:
        summary = self._summary
        assert summary is not None
        if self.window.empty:
            return [Text("no elements", "dim")]
        if self.mode == "histogram":
            size = self.query_one(TensorGrid).size
            axis = HistogramAxis([summary], size.width)
            return [Text(line) for line in [*axis.bars(summary, max(1, size.height - 2)), axis.labels()]]
        if self.mode == "heat map":
            return heat_lines(self._page, self._largest, self._marked, zoom=self._zoom, plain=self._plain)
        return self._numbers()

    @property
    def _largest(self) -> float:
        assert self._summary is not None
        return max((abs(end) for end in (self._summary.min, self._summary.max) if end is not None), default=0.0)

    @property
    def _marked(self) -> tuple[int, int]:
        """Line and column of the cursor in the page."""
        (line, column), (lines, columns) = self.window.cursor, self.window.seen
        return line - lines.start, column - columns.start

    def _numbers(self) -> list[Text]:
        lines, columns = self.window.seen
        wrapped = len(self.window.shape) < 2
        margin = len(str(self.window.extent[0] * (self.window.extent[1] if wrapped else 1)))
        # Elements of a tensor of one dimension are counted through: the line says where it begins.
        head = Text(" " * (margin + 1), "dim", end="")
        for column in columns:
            head.append(f"{'+' if wrapped else ''}{column}".rjust(self._cell))
        drawn = [head]
        for line, values in zip(lines, self._page):
            number = line * self.window.extent[1] if wrapped else line
            text = Text(end="").append(f"{number:>{margin}} ", "dim")
            for column, value in zip(columns, values):
                style = Style(reverse=True) if (line, column) == self.window.cursor else _style(value)
                text.append(" " * (self._cell - len(_short(value)))).append(_short(value), style)
            drawn.append(text)
        return drawn

    def _below(self) -> Text:
        """Return the number under the cursor, whole, or what has gone wrong."""
        if self._problem:
            return Text(self._problem, "bold red")
        if self._summary is None:
            return Text("asking the program …", "dim")
        if self.mode == "histogram":
            return Text("how many numbers have a magnitude between two powers of two", "dim")
        row, column = self._marked
        if not (0 <= row < len(self._page) and 0 <= column < len(self._page[row])):
            return Text("")
        place = ", ".join(map(str, self.window.place))
        text = Text(f"[{place}] = {_exact(self._page[row][column], self._summary.dtype)}", "bold")
        if self.mode == "heat map":
            text.append(f"   {PLAIN_LEGEND if self._plain else LEGEND}", "dim")
        return text

    # Keys ------------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys to the input while something is typed."""
        return action == "leave" if self._question else super().check_action(action, parameters)

    def action_leave(self) -> None:
        """Close the input, or else the viewer."""
        if self._question:
            self._close_input()
        else:
            self.dismiss(None)

    def action_move(self, lines: int, columns: int) -> None:
        """Move the cursor."""
        self.window.move(lines, columns)
        self._show()

    def action_page(self, lines: int, columns: int) -> None:
        """Move by half of what is seen."""
        self.window.page(lines, columns)
        self._show()

    def action_slice(self, step: int) -> None:
        """Go to the next slice, or to the one before."""
        if not self.window.step_slice(step):
            refuse(self.app, f"this is the {'last' if step > 0 else 'first'} slice")
        self._show()

    def action_turn(self) -> None:
        """Show other dimensions as lines and columns."""
        if not self.window.turn():
            refuse(self.app, "a tensor of fewer than two dimensions has no others to show")
        self._show()

    def action_view(self) -> None:
        """Go from numbers to a heat map, to a histogram, and back."""
        self.mode = _MODES[(_MODES.index(self.mode) + 1) % len(_MODES)]
        self._page = []
        if self._graphics is not None and self.mode == "heat map" and not self._plain:
            self._graphics.ask()
        self._show()

    def action_measure(self) -> None:
        """Go from the difference to the relative error, and back."""
        if not self.subject.against:
            refuse(self.app, "there is nothing to compare with yet: c asks for it")
            return
        other = _MEASURES[1 - _MEASURES.index(self.subject.measure)]
        self.subject = replace(self.subject, measure=other)
        self._load()

    def action_find(self, sought: str) -> None:
        """Go to the next NaN, the largest or the smallest number."""
        subject, after = self.subject, self.window.element if self.window.shape else -1

        async def find() -> None:
            found = await self._ask(lambda: self._session.find_element(subject, sought, after))
            if found is not None:
                self.window.go(found)
                self._show()
            elif not self._problem:
                what = {"not finite": "all numbers are finite", "smallest": "all numbers are 0"}
                refuse(self.app, what.get(sought, "there are no numbers"))

        self.run_worker(find(), group="find", exclusive=True)

    def action_copy(self, form: str) -> None:
        """Copy the slice."""
        subject, index, columns, count = self.subject, self.window.slice(), self.window.extent[1], self.window.size
        if count > MOST_COPIED:
            refuse(self.app, f"this slice has {count:,} numbers, too many to copy: s saves the tensor")
            return

        async def copy() -> None:
            page: TensorPage | None = await self._ask(lambda: self._session.tensor_page(subject, index))
            if page is None:
                return
            flat = len(page.shape) < 2
            lines = [list(page.values)] if flat else self.window.lines_of(page.values, columns)
            text = as_csv(lines, page.dtype) if form == "csv" else as_numpy(lines, page.dtype, flat=flat)
            self.app.copy_to_clipboard(text)
            self.app.notify(f"copied {count:,} numbers of {self.window.title} as {form}", timeout=3, markup=False)

        self.run_worker(copy(), group="copy", exclusive=True)

    # What is typed ---------------------------------------------------------------------------------------------------

    def action_ask(self, question: str) -> None:
        """Ask for what to compare with, or where to save."""
        self._question = question
        entry = self.query_one("#tensor-input", Input)
        comparing = question.startswith("compare")
        entry.value = (self.subject.against or self._other) if comparing else ""
        entry.placeholder = (
            "an expression: grads[0] · at_node(12).produced[0] · at_node(12, backward=3).grad · nothing ends it"
            if comparing
            else "FILE.npy"
        )
        entry.border_title = question
        entry.display = True
        entry.cursor_position = len(entry.value)
        entry.focus()

    def _close_input(self) -> None:
        self._question = ""
        self.query_one("#tensor-input", Input).display = False
        self.query_one(TensorGrid).focus()

    @on(Input.Submitted)
    def _answered(self, event: Input.Submitted) -> None:
        event.stop()
        question, text = self._question, event.value.strip()
        self._close_input()
        if question.startswith("compare"):
            self.subject = replace(self.subject, against=text)
            self._load()
        elif text:
            self._save(str(Path(text).expanduser().absolute()))

    def _save(self, path: str) -> None:
        subject = self.subject

        async def save() -> None:
            self._problem = ""
            written = await self._ask(lambda: self._session.save_tensor(subject, path))
            if written is not None:
                self.app.notify(f"the tensor is in {written}", timeout=4, markup=False)

        self.run_worker(save(), group="save", exclusive=True)


def as_numpy(lines: Sequence[Sequence[Any]], dtype: str, *, flat: bool = False) -> str:
    """Return numbers as a NumPy expression.

    Examples
    --------
    >>> as_numpy([[1.0, float("nan")], [0.1, -2.0]], "float32")
    'np.array([[1.0, np.nan], [0.1, -2.0]], dtype=np.float32)'
    """
    rows = [f"[{', '.join(_python(value, dtype) for value in line)}]" for line in lines]
    kind = "bool_" if dtype == "bool" else dtype
    return f"np.array({rows[0] if flat else '[' + ', '.join(rows) + ']'}, dtype=np.{kind})"


def as_csv(lines: Sequence[Sequence[Any]], dtype: str) -> str:
    """Return numbers as lines of comma-separated values."""
    return "\n".join(",".join(_exact(value, dtype) for value in line) for line in lines)


def _exact(value: Any, dtype: str) -> str:
    """Write a number so that reading it gives the same one."""
    if isinstance(value, tuple):
        return str(complex(*value)).strip("()")
    if not isinstance(value, float) or dtype not in ("float32", "float16"):
        return str(value)
    short = f"{value:.9g}"
    return short if any(c in short for c in ".en") else f"{short}.0"


def _python(value: Any, dtype: str) -> str:
    text = _exact(value, dtype)
    if isinstance(value, float) and not isfinite(value):
        return f"-np.{text[1:]}" if text.startswith("-") else f"np.{text}"
    return f"complex{value}" if isinstance(value, tuple) else text


def _short(value: Any) -> str:
    """Write a number in ten cells; a complex one in twice as many."""
    if isinstance(value, tuple):
        return f"{value[0]:.3g}{value[1]:+.3g}j"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _style(value: Any) -> str:
    magnitude = magnitude_of(value)
    if not isfinite(magnitude):
        return "bold yellow" if isnan(magnitude) else "bold magenta"
    return "dim" if not magnitude else ""
