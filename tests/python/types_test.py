"""Every public name of the package says what it does and of what types it is; mypy and help()
agree."""

import ast
import importlib
import importlib.util
import os
import pathlib
import pkgutil
import pydoc
import subprocess
import sys
import unittest

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"
CALLED = {"__init__", "__call__"}  # special methods that are called like others


def is_public(name):
    return name in CALLED or not name.startswith("_")


def statements(body):
    """The statements of a module or class, including conditional ones."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            for name in ("body", "orelse", "finalbody"):
                yield from statements(getattr(statement, name, []))
            for handler in getattr(statement, "handlers", []):
                yield from statements(handler.body)


def definitions(body, prefix=""):
    """(name, class or function) of everything public."""
    for node in statements(body):
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if is_public(node.name):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from definitions(node.body, f"{prefix}{node.name}.")


def is_static(function):
    return any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in function.decorator_list)


def untyped(name, function):
    """A function's parameters without a type, and "return" if it has none."""
    arguments = function.args
    named = arguments.posonlyargs + arguments.args
    if "." in name and not is_static(function):
        named = named[1:]  # self
    named += arguments.kwonlyargs + [a for a in (arguments.vararg, arguments.kwarg) if a]
    missing = [argument.arg for argument in named if argument.annotation is None]
    # What __init__ returns goes without saying, if there is a parameter that has a type.
    if function.returns is None and not (function.name == "__init__" and named):
        missing.append("return")
    return missing


def wants_docstring(node):
    # A class says what it is if it is made without arguments.
    arguments = getattr(node, "args", None)
    return not (node.name == "__init__" and len(arguments.args) == 1
                and not (arguments.kwonlyargs or arguments.vararg or arguments.kwarg))


def problems(text, path):
    tree = ast.parse(text)
    if not ast.get_docstring(tree):
        yield f"{path}:1: the module has no docstring"
    for name, node in definitions(tree.body):
        if wants_docstring(node) and not ast.get_docstring(node):
            yield f"{path}:{node.lineno}: {name} has no docstring"
        if not isinstance(node, ast.ClassDef):
            missing = untyped(name, node)
            if missing:
                yield f"{path}:{node.lineno}: {name} has no types of {', '.join(missing)}"


class Types(unittest.TestCase):
    def test_public_names_have_docstrings_and_types(self):
        files = sorted((PYTHON / "renzan").rglob("*.py"))
        self.assertGreater(len(files), 40)
        found = [problem for path in files
                 for problem in problems(path.read_text(), path.relative_to(PYTHON.parent))]
        if found:
            self.fail("\n" + "\n".join(found))

    def test_what_is_missing_is_found(self):
        text = '''
def f(a, *b: int, c=1, **d) -> None:
    """Says."""
    def nested(x): ...
if 1:
    class C:
        def __init__(self, x: int): ...
        def __call__(self): ...
        def __len__(self): ...
        @staticmethod
        def g(x) -> int:
            """Says."""
        @property
        def p(self) -> int: ...
        def _private(self, x): ...
class D:
    """Says."""
    def __init__(self) -> None: ...
class _E:
    def g(self): ...
'''
        self.assertEqual(list(problems(text, "m.py")), [
            "m.py:1: the module has no docstring",
            "m.py:2: f has no types of a, c, d",
            "m.py:6: C has no docstring",
            "m.py:7: C.__init__ has no docstring",
            "m.py:8: C.__call__ has no docstring",
            "m.py:8: C.__call__ has no types of return",
            "m.py:11: C.g has no types of x",
            "m.py:14: C.p has no docstring"])

    @unittest.skipUnless(importlib.util.find_spec("torch"),
                         "PyTorch is not installed (Debian: python3-torch)")
    def test_help_shows_every_module(self):
        modules = pkgutil.walk_packages([str(PYTHON / "renzan")], "renzan.")
        names = ["renzan", *(m.name for m in modules if "._" not in m.name)]
        self.assertIn("renzan.horovod.torch.elastic.state", names)
        for name in names:
            with self.subTest(module=name):
                self.assertIn("FILE", pydoc.render_doc(importlib.import_module(name),
                                                       renderer=pydoc.plaintext))

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed (Debian: mypy)")
    def test_mypy(self):
        # Sees the package once: not also through PYTHONPATH.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--config-file=pyproject.toml", "--no-incremental",
             f"--cache-dir={os.devnull}", "renzan"],
            cwd=PYTHON, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True)
        if done.returncode != 0:
            self.fail("\n" + done.stdout)


if __name__ == "__main__":
    unittest.main()
