"""Tables: named columns with units, looked at by NumPy, pandas and Arrow where they lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

_FIXED = {"bool", "int16", "int32", "int64", "uint32", "float64"}


class Category:
    """Texts that repeat, as codes into a list of distinct texts.

    Attributes:
        codes: int32 or int8 array, one code a row; looked at, not copied, when it comes from one track.
        categories: the texts by code, decoded when they are asked for.
    """

    def __init__(self, codes: npt.NDArray[Any], categories: Categories) -> None:
        self.codes = codes
        self.categories = categories

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> str:
        return self.categories[int(self.codes[row])]

    def __iter__(self) -> Iterator[str]:
        return (self.categories[int(code)] for code in self.codes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        import numpy as np

        if copy is False:
            raise ValueError("texts of a category are decoded: this is a copy; take .codes to have none")
        texts = np.empty(len(self.codes), dtype=object)
        used, inverse = np.unique(self.codes, return_inverse=True)
        if len(used) > 0:
            decoded = np.empty(len(used), dtype=object)
            decoded[:] = [self.categories[int(code)] for code in used]
            texts[:] = decoded[inverse]
        return texts if dtype is None else texts.astype(dtype)

    def matches(self, wanted: str | Callable[[str], object]) -> npt.NDArray[np.bool_]:
        """Rows whose text is ``wanted``, or for whose text ``wanted(text)`` is true: a bool array of shape (rows,).

        Every distinct text is looked at once.
        """
        import numpy as np

        used = np.flatnonzero(np.bincount(self.codes.astype(np.int64), minlength=len(self.categories)))
        test = wanted if callable(wanted) else wanted.__eq__
        chosen = np.zeros(len(self.categories) + 1, dtype=np.bool_)
        for code in used:
            chosen[code] = bool(test(self.categories[int(code)]))
        mask: npt.NDArray[np.bool_] = chosen[self.codes]
        return mask

    def to_pandas(self) -> pd.Categorical:
        """A pandas Categorical of the texts that occur. pandas keeps its own codes, so they are copied."""
        import numpy as np
        import pandas as pd

        used, inverse = np.unique(self.codes, return_inverse=True)
        texts = [self.categories[int(code)] for code in used]
        distinct = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        places = np.array([distinct[text] for text in texts], dtype=np.int64)
        codes = places[inverse] if len(texts) > 0 else np.zeros(0, dtype=np.int64)
        return pd.Categorical.from_codes(codes, categories=pd.Index(list(distinct), dtype=object))

    def __repr__(self) -> str:
        return f"<lockstep.Category of {len(self)} rows, {len(self.categories)} categories>"


class Categories:
    """The texts that codes stand for; each is decoded when it is first asked for."""

    def __init__(self, texts: _native.Column) -> None:
        self._texts = texts
        self._decoded: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, code: int) -> str:
        text = self._decoded.get(code)
        if text is None:
            text = self._texts.values(code, code + 1)[0]
            self._decoded[code] = text
        return str(text)


def _array(buffer: _native.Buffer) -> npt.NDArray[Any]:
    import numpy as np

    return np.asarray(buffer)


def _mask(column: _native.Column) -> npt.NDArray[np.bool_] | None:
    nulls = column.nulls()
    return None if nulls is None else _array(nulls)


def _objects(values: list[Any]) -> npt.NDArray[np.object_]:
    import numpy as np

    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def _list_views(column: _native.Column) -> npt.NDArray[np.object_]:
    """One entry a row, each a view into the values of all rows."""
    import numpy as np

    offsets_buffer = column.offsets()
    assert offsets_buffer is not None
    offsets = _array(offsets_buffer)
    item = _column_array(column.children()[0])
    made = np.empty(len(column), dtype=object)
    for row in range(len(column)):
        made[row] = item[offsets[row] : offsets[row + 1]]
    return made


def _column_array(column: _native.Column) -> Any:
    """What ``table[name]`` is for a column that lies in one piece."""
    import numpy as np

    kind = column.kind
    if kind == "category":
        return Category(_array(column.data()), Categories(column.dictionary()))
    if kind in _FIXED:
        values = _array(column.data())
        mask = _mask(column)
        if mask is None or kind == "float64":  # Nulls of float columns are NaN already.
            return values
        return np.ma.MaskedArray(values, mask=mask, copy=False)
    if kind == "list" and column.children()[0].kind != "struct":
        return _list_views(column)
    return _objects(column.values(0, len(column)))


class Column:
    """One column of a table.

    Attributes:
        name: its name, with the unit at its end where it has one (``span_ns``).
        unit: ``"ns"``, ``"bytes"``, ``"bytes/s"``, ``"0..1"``, ``"count"``, ...; empty where there is none. Instants say
            on which clock they are.
        kind: ``"bool"``, ``"int64"``, ``"float64"``, ``"text"``, ``"category"``, ``"list"``, ``"struct"``, ...
        nullable: whether a value can be *not measured*; that is a property of the column, not of the run's data.
    """

    def __init__(self, parts: list[_native.Column]) -> None:
        self._parts = parts
        self._values: Any = None
        self.name = parts[0].name
        self.unit = parts[0].unit
        self.kind = parts[0].kind
        self.nullable = parts[0].nullable

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    @property
    def null_count(self) -> int:
        """Rows without a value."""
        return sum(part.null_count for part in self._parts)

    def to_numpy(self) -> Any:
        """The values, of shape (rows,).

        Numbers and bools are read-only views of lockstep's own memory, which they keep alive; nothing is copied, unless
        the table spans several tracks. A nullable integer column is a ``numpy.ma.MaskedArray``; nulls of float columns are
        NaN. Texts are an object array of str (None: null), lists an object array of array views, names of events a
        ``Category``.
        """
        if self._values is None:
            arrays = [_column_array(part) for part in self._parts]
            self._values = arrays[0] if len(arrays) == 1 else _joined(arrays)
        return self._values

    def to_pylist(self) -> list[Any]:
        """The values as Python objects; None where there is none."""
        return [value for part in self._parts for value in part.values(0, len(part))]

    def _to_pandas(self) -> Any:
        import pandas as pd

        if len(self._parts) == 1 and self.nullable and self.kind in ("int64", "bool"):
            values, mask = _array(self._parts[0].data()), _mask(self._parts[0])
            masked: Any = pd.arrays.IntegerArray if self.kind == "int64" else pd.arrays.BooleanArray
            return masked(values, mask)
        values = self.to_numpy()
        return values.to_pandas() if isinstance(values, Category) else values

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        if len(self._parts) != 1:
            raise ValueError("the column spans several tracks; take the table's stream")
        return self._parts[0].arrow_array()

    def __repr__(self) -> str:
        unit = f" [{self.unit}]" if self.unit else ""
        return f"<lockstep.Column {self.name}{unit}: {self.kind}, {len(self)} rows>"


def _joined(arrays: list[Any]) -> Any:
    import numpy as np

    if isinstance(arrays[0], Category):
        codes = np.concatenate([array.codes for array in arrays])
        codes.flags.writeable = False
        return Category(codes, arrays[0].categories)
    values = np.concatenate(arrays)
    values.flags.writeable = False
    return values


class Table:
    """Columns of one length, read-only.

    ``table["span_ns"]`` is a NumPy array, ``table.to_pandas()`` a frame, ``pyarrow.table(table)`` an Arrow table, and
    ``for row in table`` gives dicts, as the rows of the command's JSON. A table keeps what it shows alive: it may outlive
    the run.
    """

    def __init__(self, chunks: list[_native.Table]) -> None:
        self._chunks = chunks
        parts = zip(*(chunk.columns() for chunk in chunks))
        self._columns = {column.name: column for column in (Column(list(part)) for part in parts)}
        self.name = chunks[0].name

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(self._columns)

    @property
    def units(self) -> dict[str, str]:
        """Unit by column; columns without one are left out."""
        return {name: column.unit for name, column in self._columns.items() if column.unit}

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return len(self), len(self._columns)

    def __len__(self) -> int:
        return sum(chunk.row_count for chunk in self._chunks)

    def column(self, name: str) -> Column:
        """The column of that name, with its unit and kind. Raises KeyError with the names there are."""
        found = self._columns.get(name)
        if found is None:
            raise KeyError(f"table {self.name} has no column {name!r}; it has {', '.join(self._columns)}")
        return found

    def __getitem__(self, name: str) -> Any:
        """The column's values: see ``Column.to_numpy``."""
        return self.column(name).to_numpy()

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_dicts())

    def to_dicts(self, begin: int = 0, end: int | None = None) -> list[dict[str, Any]]:
        """Rows ``begin`` to ``end`` as dicts of Python objects; None where nothing was measured."""
        begin, end, _ = slice(begin, end).indices(len(self))
        rows: list[dict[str, Any]] = []
        first = 0
        for chunk in self._chunks:
            low, high = max(begin - first, 0), min(end - first, chunk.row_count)
            first += chunk.row_count
            if low < high:
                values = [column.values(low, high) for column in chunk.columns()]
                rows.extend(dict(zip(self._columns, row)) for row in zip(*values))
        return rows

    def to_numpy(self) -> dict[str, Any]:
        """Every column's array by name: see ``Column.to_numpy``."""
        return {name: column.to_numpy() for name, column in self._columns.items()}

    def to_pandas(self) -> pd.DataFrame:
        """A frame over the same memory.

        Numbers are not copied: integers are int64, nullable ones Int64, floats float64 with NaN for null. Such a frame can
        be read, filtered, grouped and joined; ``frame.copy()`` gives one that can be written in place. Texts become pandas'
        own strings and names of events a Categorical: those are copies. Units are in ``frame.attrs["units"]``.
        """
        import pandas as pd

        columns: Mapping[str, Any] = {name: column._to_pandas() for name, column in self._columns.items()}
        frame = pd.DataFrame(columns, index=pd.RangeIndex(len(self)), copy=False)
        frame.attrs["units"] = self.units
        return frame

    def __arrow_c_schema__(self) -> object:
        return self._chunks[0].arrow_schema()

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        if len(self._chunks) != 1:
            raise ValueError("the table spans several tracks; take its stream, as pyarrow.table() does")
        return self._chunks[0].arrow_array()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _native.arrow_stream(self._chunks)

    def __repr__(self) -> str:
        from ._repr import table_text

        return table_text(self)

    def _repr_html_(self) -> str:
        from ._repr import table_html

        return table_html(self)
