"""The store of all seeds, and what goes wrong in it and on the way to it."""

import concurrent.futures
import threading
import time

from faulty_store import FaultyStore
from store import Store

PASSED_ON_S = 0.05  # within which a request reaches the store, unless it is delayed


class Storage:
    """The store of all seeds in turn, with a proxy before it."""

    def __init__(self, folder):
        self.store = Store(folder)
        self._faulty = None
        self._delay_s = 0  # the longest delay of a request
        self._restarts = concurrent.futures.ThreadPoolExecutor(1)
        self._restart = None
        self._outages = []

    def __enter__(self):
        self.store.__enter__()
        self._faulty = FaultyStore(self.store).__enter__()
        return self

    def __exit__(self, *_):
        self.settle()
        self._faulty.__exit__()
        self.store.__exit__()

    def environment(self, stored):
        """The variables of a seed's processes (scenario.Stored)."""
        place = self._faulty if stored.proxied else self.store
        return place.environment() | {"RENZAN_S3_RETRY_FOR": stored.retry_for}

    def begin(self, requests):
        """From now on, these requests fail (scenario.py), and no others."""
        self._faulty.reset()
        self._delay_s = sum(each.fault.seconds for each in requests)
        for each in requests:
            self._faulty.inject(each.fault, *each.where, every=each.every, times=each.times)

    def disturb(self, outage):
        """Begins the outage in the background."""
        if outage.fault is None:
            self._restart = self._restarts.submit(self._restart_after, outage.seconds)
            return
        rule = self._faulty.inject(outage.fault)
        self._outages.append(threading.Timer(outage.seconds, self._end, [rule]))
        self._outages[-1].start()

    def _restart_after(self, seconds):
        self.store.kill()
        time.sleep(seconds)
        self.store.start()

    def _end(self, rule):
        """Ends an outage."""
        rule.times = rule.hits

    def settle(self):
        """Ends all faults. Returns how many requests have failed, once no request of an ended
        process can still arrive."""
        for outage in self._outages:
            outage.cancel()
        self._outages = []
        if self._restart:
            self._restart.result()
            self._restart = None
        self._faulty.clear()
        time.sleep(self._delay_s + PASSED_ON_S)
        return sum(bool(request.fault) for request in self._faulty.requests())
