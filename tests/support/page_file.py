"""Reads a report page as docs/formats/page-data.md says: its own reader, which shares nothing with the page's program."""

import array
import base64
import gzip
import json
import math
import re
import struct
import sys

BLOCK = re.compile(r'<script type="application/x-lockstep" id="lockstep-([a-z0-9-]+)" data-raw-bytes="(\d+)">([A-Za-z0-9+/=]*)</script>')
TYPES = {"u8": "B", "u16": "H", "u32": "I", "f64": "d"}
NONE = 2**32 - 1


class Columns:
    """A block of columns: `header`, and columns by name."""

    def __init__(self, raw):
        assert raw[:8] == b"LSCOLS01", raw[:8]
        length, zero = struct.unpack_from("<II", raw, 8)
        assert zero == 0
        self.header = json.loads(raw[16 : 16 + length])
        self.raw = raw
        self.begin = (16 + length + 7) // 8 * 8

    def __getitem__(self, name):
        info = next(info for info in self.header["columns"] if info["name"] == name)
        code, count, offset = TYPES[info["type"]], info["count"], self.begin + info["offset"]
        width = struct.calcsize("<" + code)
        assert offset % 8 == 0 and offset + count * width <= len(self.raw)
        bytes_of_values = bytearray(count * width)
        for plane in range(width):
            bytes_of_values[plane::width] = self.raw[offset + plane * count : offset + (plane + 1) * count]
        values = array.array(code, bytes(bytes_of_values))
        if sys.byteorder == "big":
            values.byteswap()
        return values

    def type_of(self, name):
        return next(info["type"] for info in self.header["columns"] if info["name"] == name)


def short_float(bits):
    exponent = bits >> 10
    return bits if exponent == 0 else (1024 + (bits & 1023)) * 2 ** (exponent - 1)


class Page:
    """A report page in a file."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        found = BLOCK.findall(self.text)
        self.packed = {name: (int(raw), text) for name, raw, text in found}
        assert len(found) == len(self.packed), "a block is there twice"
        self.document = json.loads(self.raw("main"))
        self.data = self.document["data"]

    def raw(self, name):
        size, text = self.packed[name]
        raw = gzip.decompress(base64.b64decode(text, validate=True))
        assert len(raw) == size, name
        return raw

    def columns(self, name):
        return Columns(self.raw(name))

    def summary(self):
        """The part that needs no script."""
        return self.text[self.text.index('<main id="summary"') : self.text.index('<script type="application/x-lockstep"')]

    def step_cells(self):
        """{(rank index, step, quantity): ns}, without cells that were not measured."""
        shape = self.data["step_matrix"]
        if shape is None:
            return {}
        block = self.columns("steps")
        cells = {}
        for quantity in shape["quantities"]:
            values = block[quantity]
            is_short = block.type_of(quantity) == "u16"
            missing = 2**16 - 1 if is_short else NONE
            unit = block.header["unit_ns"][quantity]
            at = 0
            for rank_index in shape["rank_indices"]:
                for step in shape["step_numbers"]:
                    if values[at] != missing:
                        cells[rank_index, step, quantity] = (short_float(values[at]) if is_short else values[at]) * unit
                    at += 1
        return cells

    def collectives(self):
        """Instances as `analyze --json` has them, times from the page's origin."""
        if "collectives" not in self.packed:
            return []
        block = self.columns("collectives")
        header = block.header
        columns = {info["name"]: block[info["name"]] for info in header["columns"]}
        sets, at = [], 0
        for size in columns["set_size"]:
            sets.append(list(columns["set_rank"][at : at + size]))
            at += size
        known = lambda value: None if math.isnan(value) else value
        instances, member = [], 0
        for i in range(header["count"]):
            first, last = columns["first_arrival"][i], columns["last_arrival"][i]
            ranks = sets[columns["set"][i]]
            instance = {
                "name": header["names"][columns["name"][i]], "group": header["groups"][columns["group"][i]],
                "sequence": columns["sequence"][i], "bytes": known(columns["bytes"][i]),
                "transfer_ns": known(columns["transfer"][i]), "busbw_bytes_per_s": known(columns["busbw"][i]),
                "total_wait_ns": columns["total_wait"][i], "step": known(columns["step"][i]), "rank_indices": ranks,
                "last_rank_index": None if columns["last_rank"][i] == NONE else columns["last_rank"][i],
                "arrival_ns": [], "end_ns": [], "wait_ns": [],
            }
            for _ in ranks:
                arrival = first + columns["member_arrival"][member] * header["arrival_unit_ns"]
                duration = columns["member_duration"][member] * header["duration_unit_ns"]
                wait = [None, last - arrival, min(last - arrival, duration)][columns["wait_rule"][i]]
                instance["arrival_ns"].append(arrival)
                instance["end_ns"].append(arrival + duration)
                instance["wait_ns"].append(wait)
                member += 1
            instances.append(instance)
        return instances

    def names(self):
        block = self.columns("names")
        text, names, at = bytes(block["text"]), [], 0
        for length in block["length"]:
            names.append(text[at : at + length].decode("utf-8"))
            at += length
        assert at == len(text)
        return names

    def events(self, rank_index):
        """Tracks of a rank: header facts and a list of (start, duration, name number, class, level)."""
        block = self.columns(f"events-{rank_index}")
        header = block.header
        start, duration, name = block["start"], block["duration"], block["name"]
        kind, level = block["class"], block["level"]
        long_start, long_duration = iter(block["long_start"]), iter(block["long_duration"])
        tracks, row = [], 0
        for track in header["tracks"]:
            events, now = [], 0
            for _ in range(track["count"]):
                now += next(long_start) if start[row] == NONE else start[row]
                length = next(long_duration) if duration[row] == NONE else duration[row]
                events.append((now * header["unit_ns"], length * header["unit_ns"], name[row], kind[row], level[row]))
                if track["sequential"]:
                    now += length
                row += 1
            tracks.append((track, events))
        assert row == len(start)
        return tracks

    def launches(self, rank_index):
        """(call, device event), each as in events(), of the device events of a rank whose call is in the page."""
        tracks = self.events(rank_index)
        every = [event for _, events in tracks for event in events]
        runtime = {event for track, events in tracks if track["lane"] == "runtime" for event in events}
        devices = [event for track, events in tracks if track["lane"] == "device" for event in events]
        launch = self.columns(f"events-{rank_index}")["launch"]
        assert len(launch) == len(devices)
        place, pairs = 0, []
        for event, value in zip(devices, launch):
            if value == 0:
                continue
            zigzag = value - 1
            place += zigzag // 2 if zigzag % 2 == 0 else -(zigzag + 1) // 2
            assert every[place] in runtime
            pairs.append((every[place], event))
        return pairs

    def timeline(self):
        """Levels: (bucket_count, bucket_ns, shares as bytes)."""
        block = self.columns("timeline")
        return [(level["bucket_count"], level["bucket_ns"], block[f"level-{i}"])
                for i, level in enumerate(block.header["levels"])]
