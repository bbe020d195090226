"""A terminal for tests: a program runs in a pseudo terminal, and the test reads its screen.

    with Terminal(["heatsink", "top"], rows=24, cols=80) as terminal:
        terminal.wait(lambda: "OPS/S" in terminal.text())
        terminal.type("q")
        self.assertEqual(terminal.end(), 0)

It understands the sequences that ncurses sends to an xterm; an unknown sequence fails the test. There are no fixed
sleeps: `wait` reads until the expected text is on the screen, and fails the test after the guard time. The program
runs in a session of its own and is killed when the context ends.
"""
import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
import unicodedata

GUARD_S = 120

ESCAPE = re.compile(r"\x1b(?:\[([?>!]?)([0-9;]*)([@-~])|\][^\x07]*\x07|[()][0-9A-Z]|[=>M])")
UNFINISHED = re.compile(r"\x1b(?:\[[?>!]?[0-9;]*|\][^\x07]*|[()])?$")


class Screen:
    """The cells of an xterm: each has a character and its SGR codes."""

    def __init__(self, rows, cols):
        self.row = self.col = 0
        self.style = ()
        self.modes = set()
        self.last = " "
        self.resize(rows, cols)

    def resize(self, rows, cols):
        self.rows, self.cols = rows, cols
        self.cells = [[(" ", ())] * cols for _ in range(rows)]
        self.region = (0, rows - 1)
        self.row, self.col = min(self.row, rows - 1), min(self.col, cols - 1)

    def text(self):
        return "\n".join("".join(char for char, _ in line).rstrip() for line in self.cells)

    def styles(self, row):
        """All SGR codes in use on this row."""
        return {code for _, style in self.cells[row] for code in style}

    def put(self, char):
        if char == "\r":
            self.col = 0
        elif char == "\n":
            self.line_feed()
        elif char == "\b":
            self.col = max(0, min(self.col, self.cols - 1) - 1)
        elif char == "\t":
            self.col = min(self.cols - 1, self.col // 8 * 8 + 8)
        elif char >= " ":
            self.write(char)

    def write(self, char):
        width = 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if self.col + width > self.cols:
            self.col = 0
            self.line_feed()
        self.cells[self.row][self.col] = (char, self.style)
        if width == 2:
            self.cells[self.row][self.col + 1] = ("", self.style)
        self.col += width
        self.last = char

    def line_feed(self):
        if self.row == self.region[1]:
            self.scroll(self.region[0], 1)
        elif self.row < self.rows - 1:
            self.row += 1

    def reverse_line_feed(self):
        if self.row == self.region[0]:
            self.scroll(self.region[0], -1)
        elif self.row > 0:
            self.row -= 1

    def scroll(self, top, count):
        """Moves the lines from `top` to the region's end up; down if count is negative."""
        bottom = self.region[1] + 1
        lines = self.cells[top:bottom]
        blank = [[(" ", ())] * self.cols for _ in range(min(abs(count), len(lines)))]
        self.cells[top:bottom] = lines[count:] + blank if count > 0 else blank + lines[:count]

    def erase(self, row, start, end):
        for col in range(max(0, start), min(end, self.cols)):
            self.cells[row][col] = (" ", ())

    def control(self, private, numbers, final):
        """Applies one control sequence."""
        values = [int(number or 0) for number in numbers.split(";")] if numbers else []
        first = values[0] if values else 0
        count = max(1, first)
        here = min(self.col, self.cols - 1)
        if final in "hl" and private in ("?", ""):
            for value in values:
                (self.modes.add if final == "h" else self.modes.discard)((private, value))
        elif final == "m":
            self.style = self.restyle(values or [0])
        elif final in "Hf":
            self.row = min(self.rows, count) - 1
            self.col = min(self.cols, max(1, values[1] if len(values) > 1 else 1)) - 1
        elif final == "d":
            self.row = min(self.rows, count) - 1
        elif final in "G`":
            self.col = min(self.cols, count) - 1
        elif final in "AB":
            self.row = min(self.rows - 1, max(0, self.row + (count if final == "B" else -count)))
        elif final in "CD":
            self.col = min(self.cols - 1, max(0, here + (count if final == "C" else -count)))
        elif final == "J":
            for row in range(self.rows):
                if row != self.row and (first == 2 or (row > self.row) == (first == 0)):
                    self.erase(row, 0, self.cols)
            self.erase(self.row, here if first == 0 else 0, here + 1 if first == 1 else self.cols)
        elif final == "K":
            self.erase(self.row, here if first == 0 else 0, here + 1 if first == 1 else self.cols)
        elif final == "X":
            self.erase(self.row, here, here + count)
        elif final == "P":
            line = self.cells[self.row]
            line[here:] = (line[here + count:] + [(" ", ())] * self.cols)[:self.cols - here]
        elif final == "@":
            line = self.cells[self.row]
            line[here:] = ([(" ", ())] * count + line[here:])[:self.cols - here]
        elif final in "LM":
            self.scroll(self.row, count if final == "M" else -count)
        elif final in "ST":
            self.scroll(self.region[0], count if final == "S" else -count)
        elif final == "r":
            last = values[1] if len(values) > 1 and values[1] else self.rows
            self.region = (count - 1, min(last, self.rows) - 1)
            self.row = self.col = 0
        elif final == "b":
            for _ in range(count):
                self.write(self.last)
        elif not (final == "t" or (private == "!" and final == "p")):
            raise AssertionError(f"what is ESC[{private}{numbers}{final}?")

    def restyle(self, values):
        style = set(self.style)
        for value in values:
            if value == 0:
                style.clear()
            elif value in (22, 24, 27):
                style -= {22: {1, 2}, 24: {4}, 27: {7}}[value]
            elif value in (39, 49):
                style -= set(range(30, 38) if value == 39 else range(40, 48))
            else:
                if 30 <= value <= 37:
                    style -= set(range(30, 38))
                style.add(value)
        return tuple(sorted(style))


class Terminal(Screen):
    def __init__(self, command, rows=24, cols=80, env=None):
        self.master, self.slave = pty.openpty()
        self.set_size(rows, cols)
        super().__init__(rows, cols)
        self.before = termios.tcgetattr(self.slave)
        self.decoder = codecs.getincrementaldecoder("utf-8")("strict")
        self.rest = ""
        self.seen = ""  # all output so far
        # Variables of the developer's terminal that would change the behaviour of ncurses and top.
        inherited = {name: value for name, value in os.environ.items() if name not in
                     ("LINES", "COLUMNS", "NO_COLOR", "TERMINFO", "ESCDELAY")}
        # setsid makes it the program's controlling terminal, so that keys cause signals.
        self.child = subprocess.Popen(["setsid", "--ctty", *command], stdin=self.slave,
                                      stdout=self.slave, stderr=self.slave,
                                      env={**inherited, "TERM": "xterm",
                                           "LC_ALL": "C.UTF-8", **(env or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        self.hang_up()

    def hang_up(self):
        """Closes the terminal, as a closed window does."""
        for descriptor in (self.master, self.slave):
            if descriptor is not None:
                os.close(descriptor)
        self.master = self.slave = None

    def set_size(self, rows, cols):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def change_size(self, rows, cols):
        """Changes the size as a user does by dragging: the program gets SIGWINCH."""
        self.resize(rows, cols)
        self.set_size(rows, cols)

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self, guard_s):
        """Reads output of the program; False if none came in that time."""
        if not select.select([self.master], [], [], guard_s)[0]:
            return False
        data = self.decoder.decode(os.read(self.master, 1 << 16))
        self.seen += data
        text = self.rest + data
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                self.put(text[at])
                at += 1
            elif found := ESCAPE.match(text, at):
                if found.group(3):
                    self.control(*found.groups())
                elif found.group() == "\x1bM":
                    self.reverse_line_feed()
                at = found.end()
            elif UNFINISHED.match(text, at):
                break
            else:
                raise AssertionError(f"what is {text[at:at + 20]!r}?")
        self.rest = text[at:]
        return True

    def wait(self, wanted, guard_s=GUARD_S):
        """Reads until wanted() is true."""
        end = time.monotonic() + guard_s
        while not wanted():
            if self.child.poll() is not None and not self.read(0):
                raise AssertionError(f"ended with {self.child.returncode}:\n{self.text()}")
            if time.monotonic() > end:
                raise AssertionError(f"not on the screen:\n{self.text()}")
            self.read(0.05)

    def wait_text(self, *texts, gone=None):
        """Waits until all these texts are on the screen at the same time, and `gone` is not. A frame may come in
        pieces, so texts that are checked together must be waited for together."""
        self.wait(lambda: all(text in self.text() for text in texts)
                  and (gone is None or gone not in self.text()))

    def end(self, guard_s=GUARD_S):
        """Waits for the program's end; returns its exit status."""
        end = time.monotonic() + guard_s
        while self.child.poll() is None:
            if time.monotonic() > end:
                raise AssertionError(f"does not end:\n{self.text()}")
            self.read(0.05)
        while self.read(0):
            pass
        return self.child.returncode

    def restored(self):
        """The terminal settings that the program has not restored; empty if it restored all."""
        wrong = []
        if termios.tcgetattr(self.slave) != self.before:
            wrong.append("the line's settings are not as they were")
        if fcntl.fcntl(self.slave, fcntl.F_GETFL) & os.O_NONBLOCK:
            wrong.append("the line is left non-blocking")
        if ("?", 1049) in self.modes:
            wrong.append("the other screen is still shown")
        if ("?", 1) in self.modes:
            wrong.append("the keypad is still the program's")
        if ("?", 25) not in self.modes and "\x1b[?25l" in self.seen:
            wrong.append("the cursor is hidden")
        if self.style:
            wrong.append(f"the style is {self.style}")
        return wrong
