"""What the tests of renzan.horovod.torch share."""

import pathlib
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent


def with_changed_import(script, directory):
    """The script with Renzan's module instead of Horovod's."""
    text = (HERE / script).read_text()
    if text.count("import horovod.torch as hvd") != 1:
        raise AssertionError(f"{script} does not import horovod.torch once")
    path = pathlib.Path(directory) / script
    path.write_text(text.replace("import horovod.torch as hvd",
                                 "import renzan.horovod.torch as hvd"))
    return path


class DirectoryTest(unittest.TestCase):
    """A test with an empty directory."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
