"""What can go wrong, as exceptions. Each has the exit status with which a program should end."""

from __future__ import annotations


class Error(RuntimeError):
    """A failure with its exit status (sysexits.h); its text says what, where and what to do next."""

    exit_status = 70

    def __init__(self, text: str, exit_status: int | None = None):
        """`exit_status`: None for the class's own."""
        super().__init__(text)
        if exit_status is not None:
            self.exit_status = exit_status


class UsageError(Error, ValueError):
    """A wrong argument, or workers that disagree."""

    exit_status = 64


class RowError(UsageError, IndexError):
    """A row number that a dataset does not have. An IndexError, too: it ends an iteration."""


class DataError(Error):
    """A damaged file, or a file of another kind."""

    exit_status = 65


class NoInputError(Error):
    """A file that does not exist or cannot be read."""

    exit_status = 66


class PeerError(Error):
    """A worker that has died or does not answer."""

    exit_status = 69


class DivergedError(Error):
    """A loss or gradient that is not finite."""

    exit_status = 70


class Stopped(Error):
    """The run was asked to stop, and has saved its work: run it again."""

    exit_status = 75


class ConfigError(Error, ValueError):
    """A configuration that cannot work."""

    exit_status = 78


ERRORS = {kind.exit_status: kind for kind in
          (UsageError, DataError, NoInputError, PeerError, Stopped, ConfigError)}
