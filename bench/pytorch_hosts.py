"""Hosts on this machine: network namespaces that tests/e2e/hosts_lib.sh makes and shapes."""
import contextlib
import subprocess

from commands import ROOT

ADDRESS = "10.77.0.1"  # of the first


@contextlib.contextmanager
def hosts(count, rate):
    """Makes `count` hosts, each of which sends and receives at most `rate` ("1gbit"), and yields
    what over_gloo() takes as `on_host`. Needs root; yields None where there is none."""
    script = ('work=$(mktemp -d); source "$0/tests/e2e/hosts_lib.sh"; '
              'can_make_hosts || { echo none; exit; }; hosts_up "$@"; echo $hosts_prefix; read -r _')
    with subprocess.Popen(["bash", "-euc", script, ROOT, str(count), rate], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        prefix = shell.stdout.readline().strip()
        try:
            yield None if prefix in ("", "none") else (
                # PyTorch's Gloo would take the address of this machine's name.
                lambda rank, command: ["ip", "netns", "exec", f"{prefix}-host{rank}", "env",
                                       "GLOO_SOCKET_IFNAME=eth0", *command])
        finally:
            shell.communicate("\n")
