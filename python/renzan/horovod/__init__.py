"""Horovod's interface: a script that imports horovod.torch imports renzan.horovod.torch instead."""
