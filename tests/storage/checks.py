"""What the tests of this folder say when something is not as it should be."""

import sys
import time


def expect(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def expect_equal(found, wanted, what):
    expect(found == wanted, f"{what}: {found!r} instead of {wanted!r}")


def raised(function, *errors):
    """Calls the function, which must raise one of these errors. Returns the error."""
    try:
        result = function()
    except errors as error:
        return error
    sys.exit(f"FAILED: no error, but {result!r}")


def play(scenario, *arguments):
    begun = time.monotonic()
    scenario(*arguments)
    print(f"{scenario.__name__}: {time.monotonic() - begun:.1f} s", flush=True)
