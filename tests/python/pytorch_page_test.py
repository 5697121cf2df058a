"""docs/pytorch.md: its diffs take the programs it names to Renzan, and these do what it says."""

import pathlib
import re
import tempfile
import unittest

import workers

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIFFS = re.findall(r"^```diff\n(.*?)^```$", (ROOT / "docs/pytorch.md").read_text(), re.M | re.S)


def changed(program, diff):
    """The program with each hunk's old lines, which must occur once, replaced by its new ones."""
    for hunk in filter(None, diff.split("@@\n")):
        lines = [line + "\n" for line in hunk.splitlines()]
        old = "".join(line[1:] for line in lines if line[0] != "+")
        new = "".join(line[1:] for line in lines if line[0] != "-")
        if program.count(old) != 1:
            raise AssertionError(f"{program.count(old)} places for the hunk\n{hunk}")
        program = program.replace(old, new)
    return program


class PageTest(unittest.TestCase):
    def run_changed(self, name, diff, count, times=1):
        """Runs it `times` times in one run directory, and returns what it prints each time."""
        said = []
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / name
            program.write_text(changed((ROOT / "examples/pytorch/before" / name).read_text(), diff)
                               .replace('"model.pt"', f'"{folder}/model.pt"'))
            for _ in range(times):
                said.append("".join(workers.run(
                    program, workers=count,
                    environment={"RENZAN_RUN_DIR": folder,
                                 "RENZAN_CHECKPOINT_DIR": f"{folder}/checkpoints"})))
            self.assertTrue((pathlib.Path(folder) / "model.pt").exists())
        return said

    def test_ddp(self):
        said, again = self.run_changed("ddp.py", DIFFS[0], 3, times=2)
        self.assertRegex(said, r"^(loss \d\.\d{4}\n){3}sha256 [0-9a-f]{64}\n$")
        self.assertEqual(self.run_changed("ddp.py", DIFFS[0], 1), [said])
        # The second run resumes at its last step.
        self.assertEqual(again, said.splitlines()[-1] + "\n")

    def test_horovod(self):
        first = self.run_changed("digits_hvd.py", DIFFS[1], 2)
        self.assertEqual(self.run_changed("digits_hvd.py", DIFFS[1], 2), first)
        self.assertLess(float(re.search(r"loss (\S+)\n", first[0]).group(1)), 1.0)

    def test_the_program_before_the_change_runs(self):  # the one for Horovod needs Horovod
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "ddp.py"
            program.write_text((ROOT / "examples/pytorch/before/ddp.py").read_text()
                               .replace('"model.pt"', f'"{folder}/model.pt"'))
            self.assertIn("loss", "".join(workers.run(program, workers=2)))


if __name__ == "__main__":
    unittest.main()
