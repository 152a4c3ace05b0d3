"""The stack machine of Python's pickles, cut down to data: it imports nothing and calls nothing that a file names.

It knows the opcodes that torch.save writes (protocols 2 to 5) and no others. A global is looked up in a fixed table
(``globals.py``) of tconv's own small functions. Counts are checked against what the file has left before they are
used, copies and containers are limited by the size of the file, and whatever goes wrong is a ``TconvError``.
"""

from __future__ import annotations

import pickle
import struct
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, BinaryIO

from tconv.formats.torch.constructors import is_key
from tconv.formats.torch.globals import build, find_global
from tconv.formats.torch.objects import Blank, Maker, Storage, damaged

_LONGEST_NAME = 1000  # bytes of a module or of a name in it
_LONGEST_INTEGER = 256  # bytes; torch.save meets none longer than those of a random generator's state
_SLACK = 1 << 20  # elements that may be copied besides one for each byte that has been read
_BYTES_EACH = 4  # of the file for a container or a place in the memo, beyond _SLACK: one byte makes 200 in memory
_OPEN = 10_000  # marks; Python's pickler does not go deeper into containers than a tenth of that
_DICTS = (dict, OrderedDict, defaultdict, Counter)

Step = Callable[["Unpickler"], None]


class Unpickler:
    """Reads one pickle from ``file``, which holds ``size`` bytes in all.

    ``storage`` makes a storage of what torch calls a persistent id, ``find`` gives what stands for a global. ``paid``:
    the bytes that it takes on the disk, if that is less than ``size``, as it was compressed.
    """

    def __init__(
        self,
        file: BinaryIO,
        size: int,
        storage: Callable[[object], Storage],
        find: Callable[[str, str], Any] = find_global,
        paid: int | None = None,
    ) -> None:
        self._file = file
        self._size = size
        self._storage = storage
        self._find = find
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        self._copied = 0
        self._room = _SLACK + (size if paid is None else paid) // _BYTES_EACH

    def load(self) -> Any:
        """The object. The file is left behind its last byte."""
        take, steps = self._take, _STEPS
        try:
            while (opcode := take(1)) != pickle.STOP:
                step = steps.get(opcode)
                if step is None:
                    raise damaged(f"its pickle has the opcode {opcode!r}, which torch.save does not write")
                step(self)
            (result,) = self._stack
        except (IndexError, KeyError, TypeError, ValueError, OverflowError, struct.error) as problem:
            raise damaged(f"its pickle is broken ({type(problem).__name__}: {problem})") from problem
        if self._marks:
            raise damaged("its pickle ends in the middle of a list")
        return result

    def _take(self, count: int) -> bytes:
        if count > 4096 and count > self._size - self._file.tell():  # before memory is asked for
            raise damaged(f"its pickle announces {count:,} bytes where the file has fewer")
        data = self._file.read(count)
        if len(data) < count:
            raise damaged("its pickle is truncated")
        return data

    def _number(self, layout: str) -> Any:
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def _line(self) -> str:
        line = self._file.readline(_LONGEST_NAME)
        if not line.endswith(b"\n"):
            raise damaged("its pickle has a name without an end")
        return line[:-1].decode("utf-8")

    def _marked(self) -> list[Any]:
        """What is on the stack above the last mark."""
        items, self._stack = self._stack, self._marks.pop()
        return items

    def _copies(self, *values: Any) -> None:
        """Count what is copied: from memoized values, a small file could fill the memory."""
        self._copied += sum(len(v) for v in values if hasattr(v, "__len__"))
        if self._copied > _SLACK and self._copied > self._file.tell() + _SLACK:
            raise damaged("its pickle copies the same values over and over")

    def _count(self) -> None:
        """Count what takes far more memory than the opcode that makes it."""
        self._room -= 1
        if self._room < 0:
            raise damaged("its pickle holds more containers than a file of its size has reason to")

    def push(self, value: object) -> None:
        self._stack.append(value)

    def make(self, kind: Callable[[], object]) -> None:
        self._count()
        self.push(kind())

    def mark(self) -> None:
        if len(self._marks) >= _OPEN:
            raise damaged(f"its containers are nested more than {_OPEN:,} deep")
        self._marks.append(self._stack)
        self._stack = []

    def memoize(self, at: int) -> None:
        if at not in self._memo:
            self._count()
        self._memo[at] = self._stack[-1]

    def recall(self, at: int) -> None:
        self.push(self._memo[at])

    def group(self, count: int) -> None:
        if len(self._stack) < count:
            raise damaged("its pickle takes more values than there are")
        self._count()
        self._stack[-count:] = [tuple(self._stack[-count:])]

    def extend(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not list:
            raise damaged(f"its pickle appends to a {type(target).__name__}")
        target.extend(items)

    def add(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not set:
            raise damaged(f"its pickle adds elements to a {type(target).__name__}")
        target.update(_key(item) for item in items)

    def assign(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) not in _DICTS:
            raise damaged(f"its pickle sets items of a {type(target).__name__}")
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[_key(key)] = value

    def find(self, module: object, name: object) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise damaged("its pickle names a global with something that is no text")
        self.push(self._find(module, name))

    def reduce(self) -> None:
        """Call what is on the stack, if it is one of the functions of the table."""
        args, maker = self._stack.pop(), self._stack.pop()
        if not isinstance(maker, Maker) or type(args) is not tuple:
            raise damaged(f"its pickle calls a {type(maker).__name__} with a {type(args).__name__}")
        self._copies(*args)
        self._count()
        self.push(maker(*args))

    def new(self) -> None:
        """An empty instance of what is on the stack, if it is a class whose instances are made so."""
        args, maker = self._stack.pop(), self._stack.pop()
        if type(maker) is not Blank or args != ():
            named = maker if isinstance(maker, Maker) else f"a {type(maker).__name__}"
            raise damaged(f"its pickle makes an instance of {named} in a way that torch.save never does")
        self.make(maker)

    def build(self) -> None:
        state = self._stack.pop()
        if type(state) is tuple:
            self._copies(*state)
        build(self._stack[-1], state)

    def persistent(self) -> None:
        self.push(self._storage(self._stack.pop()))

    def proto(self) -> None:
        version = self._take(1)[0]
        if version > pickle.HIGHEST_PROTOCOL:
            raise damaged(f"its pickle is of protocol {version}, later than any known")

    def inst(self) -> None:
        """An opcode of protocol 0 that calls a class; what it names is worth saying."""
        found = self._find(self._line(), self._line())
        raise damaged(f"its pickle calls {found} in a way that torch.save never does")


def _key(value: Any) -> Any:
    if not is_key(value):
        raise damaged(f"its pickle has a {type(value).__name__} as a key")
    return value


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _python2_text(data: bytes) -> str | bytes:
    """Python 2 has one type for text and bytes; torch decodes as UTF-8, and so does this where it is."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def _integer(data: bytes) -> int:
    if len(data) > _LONGEST_INTEGER:
        raise damaged(f"its pickle has an integer of {len(data):,} bytes")
    return int.from_bytes(data, "little", signed=True)


def _literal(make: Callable[[], object]) -> Step:
    return lambda machine: machine.push(make())


def _empty(kind: Callable[[], object]) -> Step:
    return lambda machine: machine.make(kind)


def _fixed(layout: str) -> Step:
    return lambda machine: machine.push(machine._number(layout))


def _sized(layout: str, decode: Callable[[bytes], object]) -> Step:
    def step(machine: Unpickler) -> None:
        count = machine._number(layout)
        if count < 0:
            raise damaged("its pickle has a negative length")
        machine.push(decode(machine._take(count)))

    return step


def _tuple(count: int) -> Step:
    return lambda machine: machine.group(count)


def _skip(count: int) -> Step:
    def step(machine: Unpickler) -> None:
        machine._take(count)

    return step


_STEPS: dict[bytes, Step] = {
    pickle.PROTO: Unpickler.proto,
    pickle.FRAME: _skip(8),
    pickle.MARK: Unpickler.mark,
    pickle.NONE: _literal(lambda: None),
    pickle.NEWTRUE: _literal(lambda: True),
    pickle.NEWFALSE: _literal(lambda: False),
    pickle.EMPTY_TUPLE: _literal(tuple),
    pickle.EMPTY_LIST: _empty(list),
    pickle.EMPTY_DICT: _empty(dict),
    pickle.EMPTY_SET: _empty(set),
    pickle.BININT: _fixed("<i"),
    pickle.BININT1: _fixed("<B"),
    pickle.BININT2: _fixed("<H"),
    pickle.BINFLOAT: _fixed(">d"),
    pickle.LONG1: _sized("<B", _integer),
    pickle.LONG4: _sized("<i", _integer),
    pickle.SHORT_BINUNICODE: _sized("<B", _text),
    pickle.BINUNICODE: _sized("<I", _text),
    pickle.BINUNICODE8: _sized("<Q", _text),
    pickle.SHORT_BINSTRING: _sized("<B", _python2_text),
    pickle.BINSTRING: _sized("<i", _python2_text),
    pickle.SHORT_BINBYTES: _sized("<B", bytes),
    pickle.BINBYTES: _sized("<I", bytes),
    pickle.BINBYTES8: _sized("<Q", bytes),
    pickle.BYTEARRAY8: _sized("<Q", bytearray),
    pickle.TUPLE: lambda m: m.push(tuple(m._marked())),
    pickle.TUPLE1: _tuple(1),
    pickle.TUPLE2: _tuple(2),
    pickle.TUPLE3: _tuple(3),
    pickle.FROZENSET: lambda m: m.push(frozenset(_key(item) for item in m._marked())),
    pickle.APPEND: lambda m: m.extend([m._stack.pop()]),
    pickle.APPENDS: lambda m: m.extend(m._marked()),
    pickle.ADDITEMS: lambda m: m.add(m._marked()),
    pickle.SETITEM: lambda m: m.assign([m._stack.pop(), m._stack.pop()][::-1]),
    pickle.SETITEMS: lambda m: m.assign(m._marked()),
    pickle.GLOBAL: lambda m: m.find(m._line(), m._line()),
    pickle.STACK_GLOBAL: lambda m: m.find(*[m._stack.pop(), m._stack.pop()][::-1]),
    pickle.INST: Unpickler.inst,
    pickle.REDUCE: Unpickler.reduce,
    pickle.NEWOBJ: Unpickler.new,
    pickle.BUILD: Unpickler.build,
    pickle.BINPERSID: Unpickler.persistent,
    pickle.BINPUT: lambda m: m.memoize(m._number("<B")),
    pickle.LONG_BINPUT: lambda m: m.memoize(m._number("<I")),
    pickle.MEMOIZE: lambda m: m.memoize(len(m._memo)),
    pickle.BINGET: lambda m: m.recall(m._number("<B")),
    pickle.LONG_BINGET: lambda m: m.recall(m._number("<I")),
}
