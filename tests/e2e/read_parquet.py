"""Reads the Parquet files that `renzan predict` writes, by the format's description and without any
of our code: columns without nulls, PLAIN and uncompressed. With pyarrow, if it is installed, also
by that, which must see the same."""

import struct
import sys


class Compact:
    """Thrift's compact protocol: a struct becomes {field id: value}."""

    def __init__(self, data, at):
        self.data, self.at = data, at

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def value(self, kind):
        if kind in (4, 5, 6):
            number = self.varint()
            return number >> 1 ^ -(number & 1)
        if kind == 8:
            size = self.varint()
            self.at += size
            return self.data[self.at - size:self.at]
        if kind == 9:
            head = self.byte()
            size = head >> 4 if head >> 4 != 15 else self.varint()
            return [self.value(head & 15) for _ in range(size)]
        assert kind == 12, kind
        fields, last = {}, 0
        while head := self.byte():
            assert head >> 4, "only short forms are expected"
            last += head >> 4
            fields[last] = self.value(head & 15)
        return fields


def page_values(data, at, end, kind, count):
    reader = Compact(data, at)
    header = reader.value(12)
    assert header[1] == 0 and header[2] == header[3] == end - reader.at, header
    assert header[5][1] == count and header[5][2] == 0, header
    at = reader.at
    if kind in (2, 4):
        code = "q" if kind == 2 else "f"
        assert end - at == count * struct.calcsize(code)
        return list(struct.unpack(f"<{count}{code}", data[at:end]))
    values = []
    for _ in range(count):
        size, = struct.unpack_from("<I", data, at)
        values.append(data[at + 4:at + 4 + size])
        at += 4 + size
    assert at == end
    return values


def read(path):
    """{column's name: its values}; texts as str, unannotated byte arrays as bytes."""
    data = open(path, "rb").read()
    assert data[:4] == data[-4:] == b"PAR1", "no Parquet file"
    size, = struct.unpack("<I", data[-8:-4])
    footer = Compact(data, len(data) - 8 - size)
    about = footer.value(12)
    assert footer.at == len(data) - 8
    root, *columns = about[2]
    assert root[5] == len(columns) and all(column[3] == 0 for column in columns)
    values = {column[4].decode(): [] for column in columns}
    assert len(values) == len(columns), "a name is there twice"
    at = 4
    for group in about[4]:
        for column, chunk in zip(columns, group[1], strict=True):
            meta = chunk[3]
            assert meta[9] == at and meta[3] == [column[4]] and meta[5] == group[3], meta
            at += meta[7]
            found = page_values(data, meta[9], at, column[1], group[3])
            if 10 in column:
                assert column[10] == {1: {}} and column[6] == 0
                found = [text.decode() for text in found]
            values[column[4].decode()] += found
    assert at == len(data) - 8 - size, "bytes that no column has"
    assert all(len(column) == about[3] for column in values.values())
    try:
        import pyarrow.parquet
    except ImportError:
        print("pyarrow is not installed: its reading is not compared", file=sys.stderr)
        return values
    table = pyarrow.parquet.read_table(path)
    assert table.to_pydict() == values, "pyarrow reads something else"
    return values
