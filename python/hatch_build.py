"""Puts librenzan.so, librenzan_mpi.so and librenzan_s3.so into the wheel. The wheel is then
specific to this platform, but works with any Python, because ctypes loads the libraries.
RENZAN_LIBRARIES names their directory, RENZAN_LICENSES that of the licences of the libraries they
need; scripts/wheel sets both."""

import os
import pathlib
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LibraryHook(BuildHookInterface):
    def initialize(self, version, build_data):
        directory = os.environ.get("RENZAN_LIBRARIES")
        if not directory:
            raise SystemExit("RENZAN_LIBRARIES is not set: build the wheel with scripts/wheel")
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        for name in ("librenzan.so", "librenzan_mpi.so", "librenzan_s3.so"):
            build_data["force_include"][str(pathlib.Path(directory) / name)] = f"renzan/lib/{name}"
        licenses = os.environ["RENZAN_LICENSES"]
        build_data["force_include"][licenses] = "renzan/lib/licenses"
