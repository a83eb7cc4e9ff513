#!/usr/bin/env python3
"""Damaged and hostile variants of a sound file: never a crash, the damage in the ledger, the other ranks analysed."""

import gzip
import os
import random
import tempfile
import unittest

import analyze_program as lockstep

EVENT = (b'{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 4458676388001.326, "dur": 2.5, '
         b'"args": {"correlation": 5, "stream": 7, "device": 0}}')


class HostileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = os.path.join(cls.holder.name, "set")
        cls.truth = lockstep.generate(cls.folder, "--ranks", 2, "--steps", 2, "--layers", 2, "--memory", "--shapes")
        with open(os.path.join(cls.folder, "rank1.json"), "rb") as file:
            cls.sound = file.read()

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def put(self, content, name="rank1.json"):
        for entry in os.listdir(self.folder):
            if entry != "rank0.json":
                os.remove(os.path.join(self.folder, entry))
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(content)

    def check(self, content, *, damaged=None, name="rank1.json"):
        """Analyses the set with `content` as rank 1; rank 0 must come out untouched. `damaged`: a code of the ledger."""
        self.put(content, name)
        answer = lockstep.analyze(self.folder)
        self.assertIn(answer.status, (lockstep.DONE, lockstep.PARTIAL), answer.error_text)
        row = answer.row("breakdown", rank=0)
        for key in ("span_ns", "busy_ns", "compute_ns", "communication_ns", "memory_ns"):
            self.assertEqual(row[key], self.truth["ranks"][0]["device"][key])
        entries = [entry for entry in answer.ledger if name in str(entry["source"])]
        if damaged is not None:
            found = [entry for entry in entries if entry["code"] == damaged]
            self.assertEqual(len(found), 1, entries)
            self.assertTrue(found[0]["advice"] and found[0]["message"], found)
            self.assertGreaterEqual(found[0]["count"], 1)
            if found[0]["rank"] is not None:
                self.assertIsNotNone(found[0]["byte_offset"], found)
        if any(entry["severity"] == "error" for entry in entries):
            self.assertEqual(answer.status, lockstep.PARTIAL)
        return answer

    def check_lost(self, content, name="rank1.json"):
        """The same for a file of which something is lost."""
        answer = self.check(content, name=name)
        self.assertEqual(answer.status, lockstep.PARTIAL)
        errors = [entry for entry in answer.ledger if entry["severity"] == "error" and name in str(entry["source"])]
        self.assertGreater(len(errors), 0, answer.ledger)
        return answer

    def with_event(self, event, at=2000):
        """The sound file with one more event among the others."""
        border = self.sound.index(b"\n  {", at)
        return self.sound[:border] + b"\n  " + event + b"," + self.sound[border:]

    def test_a_file_cut_anywhere(self):
        offsets = [0, 1, 2, 10, 100] + random.Random(7).sample(range(200, len(self.sound) - 200), 40)
        for offset in offsets:
            with self.subTest(offset=offset):
                self.check_lost(self.sound[:offset])

    def test_a_compressed_file_cut_anywhere(self):
        packed = gzip.compress(self.sound, 1)
        for offset in [1, 2, 9, 10, 18] + random.Random(8).sample(range(20, len(packed)), 25) + [len(packed) - 1]:
            with self.subTest(offset=offset):
                self.check_lost(packed[:offset], name="rank1.json.gz")

    def test_flipped_bytes_of_a_compressed_file(self):
        packed = gzip.compress(self.sound, 1)
        generator = random.Random(9)
        for _ in range(25):
            bad = bytearray(packed)
            for _ in range(3):
                bad[generator.randrange(12, len(bad))] ^= 1 << generator.randrange(8)
            self.check(bytes(bad), name="rank1.json.gz")

    def test_flipped_bytes_of_the_text(self):
        generator = random.Random(10)
        for _ in range(60):
            bad = bytearray(self.sound)
            for _ in range(4):
                bad[generator.randrange(len(bad))] = generator.randrange(256)
            self.check(bytes(bad))

    def test_missing_and_doubled_stretches(self):
        generator = random.Random(11)
        for _ in range(30):
            start = generator.randrange(len(self.sound))
            stop = min(len(self.sound), start + generator.randrange(1, 4000))
            self.check(self.sound[:start] + self.sound[stop:])
            self.check(self.sound[:stop] + self.sound[start:])

    def test_strings_that_are_no_json(self):
        variants = {
            "an escape that does not exist": ("invalid_escape", EVENT.replace(b'"k"', b'"a\\qb"')),
            "a cut escape": ("invalid_escape", EVENT.replace(b'"k"', b'"a\\u12"')),
            "half a surrogate pair": ("invalid_escape", EVENT.replace(b'"k"', b'"a\\ud800b"')),
            "raw control characters": ("control_character", EVENT.replace(b'"k"', b'"a\x01\x02\tb\nc"')),
            "bytes that are not UTF-8": ("invalid_utf8", EVENT.replace(b'"k"', b'"a\xff\xfe\x80b"')),
            "a zero byte": ("control_character", EVENT.replace(b'"k"', b'"a\x00b"')),
            "quotes that are not escaped": ("unescaped_quote", EVENT.replace(b'"k"', b'"torch_compile("x.py")"')),
        }
        for name, (code, event) in variants.items():
            with self.subTest(damage=name):
                answer = self.check(self.with_event(event), damaged=code)
                kernels = sum(row["count"] for row in answer.rows("kernels", rank=1))
                sound = self.truth["ranks"][1]["device"]["kernel_count"]
                self.assertGreaterEqual(kernels, sound - 3)
                self.assertTrue(answer.text.decode("utf-8"))

    def test_values_that_make_no_sense(self):
        variants = {
            "NaN": ("non_finite_number", EVENT.replace(b"2.5", b"NaN")),
            "Infinity": ("non_finite_number", EVENT.replace(b"2.5", b"-Infinity")),
            "a time beyond 64 bits": ("integer_overflow", EVENT.replace(b"4458676388001.326", b"99999999999999999999999999.5")),
            "an exponent": ("integer_overflow", EVENT.replace(b"4458676388001.326", b"4.4e400")),
            "a long fraction": (None, EVENT.replace(b"2.5", b"2." + b"5" * 5000)),
            "a negative duration": ("negative_duration", EVENT.replace(b"2.5", b"-2.5")),
            "a correlation beyond 64 bits": ("wrong_type", EVENT.replace(b'"correlation": 5', b'"correlation": 184467440737095516150')),
            "a negative correlation": (None, EVENT.replace(b'"correlation": 5', b'"correlation": -1')),
            "a time that is a string": (None, EVENT.replace(b"4458676388001.326", b'"4458676388001.326"')),
            "a name that is a number": ("wrong_type", EVENT.replace(b'"k"', b"17")),
            "a name that is an object": ("wrong_type", EVENT.replace(b'"k"', b'{"a": [1, 2]}')),
            "arguments that are a list": (None, EVENT[:EVENT.index(b'{"corr')] + b"[1, 2]}"),
            "no time": ("missing_key", EVENT.replace(b'"ts": 4458676388001.326, ', b"")),
            "no name": ("missing_key", EVENT.replace(b'"name": "k", ', b"")),
            "no category": (None, EVENT.replace(b'"cat": "kernel", ', b"")),
            "keys twice": (None, EVENT.replace(b'"pid": 0', b'"pid": 0, "pid": 3, "name": "other"')),
            "an element that is not an object": ("bad_event", b"17"),
            "an element that is null": ("bad_event", b"null"),
            "an empty element": ("missing_key", b"{}"),
            "two commas": (None, b""),
            "a comment": ("bad_event", b"/* hello */ {}"),
            "a huge process id": (None, EVENT.replace(b'"pid": 0', b'"pid": 9223372036854775808')),
        }
        for name, (code, event) in variants.items():
            with self.subTest(damage=name):
                answer = self.check(self.with_event(event), damaged=code)
                kernels = sum(row["count"] for row in answer.rows("kernels", rank=1))
                self.assertGreaterEqual(kernels, self.truth["ranks"][1]["device"]["kernel_count"])

    def test_an_event_of_the_far_future_does_not_hide_the_rest(self):
        event = EVENT.replace(b"2.5", b"9000000000000000.0")
        self.check(self.with_event(event))

    def test_deep_nesting(self):
        for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
            for depth in (100, 5000, 200_000):
                inner = opening * depth + b"1" + closing * depth
                event = EVENT.replace(b'"correlation": 5', b'"correlation": 5, "deep": ' + inner)
                with self.subTest(depth=depth, opening=opening):
                    self.check(self.with_event(event))
                    self.check(self.sound.replace(b'"schemaVersion"', b'"deep": ' + inner + b', "schemaVersion"', 1))
                    self.check(b'{"traceEvents": ' + opening * depth)

    def test_an_event_larger_than_any_window(self):
        event = EVENT.replace(b'"k"', b'"' + b"x" * (3 << 20) + b'"')
        self.check(self.with_event(event))

    def test_files_that_are_no_traces(self):
        for content in (b"", b" ", b"{}", b"[]", b"null", b'"text"', b'{"traceEvents": 5}', b'{"traceEvents": {}}', b"\x00" * 4096,
                        b"\xef\xbb\xbf{}", b"<html></html>", b"\x1f\x8b", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd", os.urandom(5000)):
            with self.subTest(content=content[:12]):
                self.check_lost(content)

    def test_an_empty_list_of_events_is_a_trace_without_events(self):
        self.check(b'{"schemaVersion": 1, "traceEvents": []}')

    def test_a_byte_order_mark_is_no_obstacle(self):
        answer = self.check(b"\xef\xbb\xbf" + self.sound)
        self.assertEqual(len(answer.data["ranks"]), 2)

    def test_a_decompression_bomb_stops_at_the_limit(self):
        bomb = gzip.compress(b'{"traceEvents": [' + b" " * (300 << 20), 9)
        self.check_lost(bomb, name="rank1.json.gz")

    def test_distributed_info_that_lies(self):
        for info in (b'{"rank": -5}', b'{"rank": 99999999999}', b'{"rank": "one"}', b'{"rank": 0, "world_size": 2}', b"[]", b"7",
                     b'{"rank": 1, "world_size": 1}', b'{"rank": 1, "world_size": 2000000000}',
                     b'{"rank": 1, "pg_config": 5}', b'{"rank": 1, "pg_config": [5, {"ranks": "all"}]}'):
            start = self.sound.index(b'"distributedInfo": ') + len(b'"distributedInfo": ')
            stop = self.sound.index(b"\n", start) - 1
            with self.subTest(info=info):
                self.put(self.sound[:start] + info + self.sound[stop:])
                answer = lockstep.analyze(self.folder)
                self.assertIn(answer.status, (lockstep.DONE, lockstep.PARTIAL, lockstep.FAILED))

    def test_a_missing_folder_and_an_empty_one(self):
        process = lockstep.run(["analyze", os.path.join(self.folder, "nothing")])
        self.assertIn(process.returncode, (lockstep.FAILED, lockstep.MISUSED))
        self.assertIn(b"nothing", process.stderr)
        with tempfile.TemporaryDirectory() as empty:
            process = lockstep.run(["analyze", empty])
            self.assertIn(process.returncode, (lockstep.FAILED, lockstep.MISUSED))


if __name__ == "__main__":
    unittest.main()
