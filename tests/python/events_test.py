"""renzan.log and renzan.EventLog, read back by a reader of its own: frames, checksums, protobuf."""

import glob
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

import renzan
import workers


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """Parses a protobuf message: [(number, value)]."""
    found, at = [], 0
    while at < len(data):
        tag, at = varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size, at = {1: (8, at), 5: (4, at)}.get(kind) or varint(data, at)
            value, at = data[at:at + size], at + size
        found.append((number, value))
    return found


def read(path):
    """Parses an event file: [(step, file version, session status, {tag: value})]."""
    data, at, events = pathlib.Path(path).read_bytes(), 0, []
    while at < len(data):
        length, length_crc = struct.unpack_from("<QI", data, at)
        assert length_crc == masked(data[at:at + 8]), "checksum of a length"
        message = data[at + 12:at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(message), "checksum"
        at += length + 16
        event = dict(fields(message))
        assert abs(struct.unpack("<d", event[1])[0] - time.time()) < 3600
        scalars = {}
        for number, value in fields(event.get(5, b"")):
            assert number == 1
            value = dict(fields(value))
            scalars[value[1].decode()] = struct.unpack("<f", value[2])[0]
        events.append((event.get(2, 0), event.get(3), dict(fields(event.get(7, b""))).get(1),
                       scalars))
    return events


def files(directory):
    return sorted(glob.glob(f"{directory}/events.out.tfevents.*"))


class EventsTest(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.TemporaryDirectory()
        self.addCleanup(self.work.cleanup)

    def test_crc_of_rfc_3720(self):
        self.assertEqual(crc32c(bytes(32)), 0x8A9136AA)

    def test_an_event_log(self):
        directory = f"{self.work.name}/new/run"
        with renzan.EventLog(directory) as log:
            log.log(0, {"train/loss": 0.75, "train/accuracy": np.float32(0.5)})
            log.log(300, {"é": 1, "nan": math.nan, "huge": 1e300})
            log.log(2 ** 40, {})
            self.assertEqual([log.path], files(directory))
            events = read(log.path)  # they are there before it is closed
        self.assertEqual(events[0], (0, b"brain.Event:2", None, {}))
        self.assertEqual(events[1], (0, None, None, {"train/loss": 0.75, "train/accuracy": 0.5}))
        self.assertEqual((events[2][0], events[2][3]["é"], events[2][3]["huge"]),
                         (300, 1.0, math.inf))
        self.assertTrue(math.isnan(events[2][3]["nan"]))
        self.assertEqual(events[3][0], 2 ** 40)
        with self.assertRaisesRegex(renzan.UsageError, "closed"):
            log.log(5, {"a": 1})

    def test_a_resumed_run_takes_the_place_of_what_it_repeats(self):
        with renzan.EventLog(self.work.name, next_step=40) as log:
            events = read(log.path)
        self.assertEqual([(step, session) for step, _, session, _ in events], [(0, None), (40, 1)])

    def test_log_writes_into_the_run_directory(self):
        program = ("import renzan\nrenzan.log(7, {'train/loss': 0.5})\n"
                   "renzan.log(8, {'train/loss': 0.25})\n")
        subprocess.run([sys.executable, "-c", program], check=True,
                       env={**os.environ, "RENZAN_RUN_DIR": self.work.name})
        (path,) = files(self.work.name)
        self.assertEqual([(step, scalars) for step, _, _, scalars in read(path)[2:]],
                         [(7, {"train/loss": 0.5}), (8, {"train/loss": 0.25})])
        self.assertEqual(read(path)[1][:3], (7, None, 1))
        env = {k: v for k, v in os.environ.items() if k != "RENZAN_RUN_DIR"}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              env=env, check=True)
        self.assertEqual(done.stderr.count("RENZAN_RUN_DIR is not set"), 1)

    def test_only_worker_0_writes(self):
        program = pathlib.Path(self.work.name) / "log.py"
        program.write_text("import renzan, sys\n"
                           "if 'init' in sys.argv: renzan.init()\n"
                           "renzan.log(1, {'rank': int(__import__('os').environ['RANK'])})\n")
        for arguments in ([], ["init"]):
            directory = f"{self.work.name}/run{len(arguments)}"
            workers.run(program, arguments, workers=3, environment={"RENZAN_RUN_DIR": directory})
            (path,) = files(directory)
            self.assertEqual(read(path)[-1][3], {"rank": 0.0})

    def test_all_workers(self):
        program = pathlib.Path(self.work.name) / "log.py"
        program.write_text("import os, renzan\nrank = os.environ['RANK']\n"
                           f"log = renzan.EventLog(f'{self.work.name}/{{rank}}', "
                           "all_workers=True)\nlog.log(1, {'rank': int(rank)})\n")
        workers.run(program, workers=2)
        for rank in (0, 1):
            (path,) = files(f"{self.work.name}/{rank}")
            self.assertEqual(read(path)[-1][3], {"rank": rank})

    def test_bad_arguments(self):
        with renzan.EventLog(self.work.name) as log:
            with self.assertRaisesRegex(renzan.UsageError, "step -1 is negative"):
                log.log(-1, {"a": 1})
            with self.assertRaises((TypeError, ValueError)):
                log.log(1, {"a": "much"})
            self.assertEqual(len(read(log.path)), 1)
        file = pathlib.Path(self.work.name) / "file"
        file.write_text("")
        with self.assertRaises(renzan.Error) as caught:
            renzan.EventLog(file / "run")
        self.assertEqual(caught.exception.exit_status, 73)


if __name__ == "__main__":
    unittest.main()
