"""renzan.chainermn: its calls on 1 to 3 workers."""

import pathlib
import unittest

import workers

try:
    import torch  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    raise SystemExit(77) from None


class ChainerMNTest(unittest.TestCase):
    def test_calls(self):
        for count in (1, 2, 3):
            with self.subTest(count=count):
                said = workers.run(pathlib.Path(__file__).parent / "chainermn_worker.py",
                                   workers=count)
                self.assertEqual(said, ["ok\n"] * count)


if __name__ == "__main__":
    unittest.main()
