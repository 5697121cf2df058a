"""What goes wrong between a client and its store, and when.

  plan = Plan()
  plan.inject(SLOW_DOWN, method="PUT", path="/checkpoints/", nth=2)
  plan.inject(limit(1 << 20), method="GET")
  plan.fail_request(7, CUT_IN_ANSWER)
"""

import dataclasses
import re
import threading
import time

WAIT_S = 60


class Link:
    """A link of limited bandwidth, shared by all requests that have it as a fault."""

    def __init__(self, bytes_per_second):
        self.bytes_per_second = bytes_per_second
        self._lock = threading.Lock()
        self._free_at = 0.0

    def carry(self, count):
        """Returns when so many bytes have passed."""
        with self._lock:
            now = time.monotonic()
            self._free_at = max(now, self._free_at) + count / self.bytes_per_second
            rest = self._free_at - now
        time.sleep(rest)


@dataclasses.dataclass(frozen=True)
class Fault:
    """A request suffers all of its faults that add up, and the first one that does not, which ends
    it."""
    name: str
    adds_up: bool = False
    status: int = 0  # answers
    code: str = ""
    region: str = ""  # the bucket's, which an answer names
    etag: str = ""  # that an answer names
    seconds: float = 0.0
    clock: float = 0.0  # seconds by which the store's clock is ahead
    link: Link | None = None
    barrier: threading.Barrier | None = None  # requests wait there for one another


# The request never reaches the store.
CUT_BEFORE = Fault("cut before")
# Half of its body reaches the store (half of its head if it has no body).
CUT_IN_REQUEST = Fault("cut in request")
# The store has carried it out, but the client is never told.
LOSE_ANSWER = Fault("lost answer")
# The client gets half of the body (half of the head if the answer has no body), then its connection
# is reset.
CUT_IN_ANSWER = Fault("cut in answer")
# The client gets half of the body, and its connection ends as if all were well. An answer without a
# body is whole.
TRUNCATE = Fault("truncated")
# The store does not get If-Match and If-None-Match, like a store that knows no conditions.
IGNORE_CONDITIONS = Fault("conditions ignored", adds_up=True)


def answer(status, code, clock=0, region=""):
    """The request never reaches the store."""
    return Fault(f"{status} {code}", status=status, code=code, clock=clock, region=region)


INTERNAL_ERROR = answer(500, "InternalError")
SLOW_DOWN = answer(503, "SlowDown")
TOO_MANY_REQUESTS = answer(429, "TooManyRequests")
EXPIRED_TOKEN = answer(403, "ExpiredToken")
ANOTHER_REGION = answer(400, "AuthorizationHeaderMalformed", region="eu-west-1")
# The client is told that all is well.
LOSE_PART = Fault("lost part", status=200, etag='"0123456789abcdef0123456789abcdef"')
TIME_TOO_SKEWED = answer(403, "RequestTimeTooSkewed", clock=3600)


def delay(seconds):
    return Fault(f"{seconds} s late", adds_up=True, seconds=seconds)


def limit(bytes_per_second):
    """Limits the bandwidth of bodies, in both directions together."""
    return Fault(f"{bytes_per_second} B/s", adds_up=True, link=Link(bytes_per_second))


def at_one_moment(count):
    """The requests that have this fault reach the store together, so many at a time."""
    return Fault(f"{count} at one moment", adds_up=True, barrier=threading.Barrier(count))


@dataclasses.dataclass
class Request:
    """A line of the log, written when the request arrives."""
    number: int  # from 1
    method: str
    target: str  # path and query, as they came
    access_key: str = ""  # of the identity that has signed it
    status: int = 0  # of the answer, also if it was lost; 0: there was none
    bytes_in: int = 0  # of the body, received from the client
    bytes_out: int = 0  # of the answer's body, sent to the client
    fault: str = ""  # names, with commas

    def is_like(self, method, path):
        return ((method is None or method == self.method)
                and re.search(path, self.target) is not None)


@dataclasses.dataclass(eq=False)
class Rule:
    fault: Fault
    method: str | None
    path: str
    nth: int | None
    every: int
    times: int | None
    access_key: str | None
    matched: int = 0  # requests
    hits: int = 0

    def hit(self, request):
        if not request.is_like(self.method, self.path) or self.access_key not in (
                None, request.access_key):
            return False
        self.matched += 1
        if self.nth is not None and self.matched != self.nth or self.matched % self.every != 0:
            return False
        if self.times is not None and self.hits >= self.times:
            return False
        self.hits += 1
        return True


class Plan:
    """Any thread may change it while requests arrive."""

    def __init__(self):
        self.log = []  # Requests, in order
        self._changed = threading.Condition()
        self._rules = []
        self._by_number = {}

    def inject(self, fault, method=None, path="", nth=None, every=1, times=None,
               access_key=None):
        """Injects the fault into requests with that method whose path and query match the regular
        expression `path`, and which are signed with that access key: only into the nth of them,
        into each `every`th, or into all, at most so many times. Returns the rule, which counts its
        hits."""
        with self._changed:
            self._rules.append(Rule(fault, method, path, nth, every, times, access_key))
            return self._rules[-1]

    def fail_request(self, number, fault):
        """Fails the request with this number, counted from 1 since the last reset()."""
        with self._changed:
            self._by_number[number] = fault

    def remove(self, rule):
        with self._changed:
            self._rules.remove(rule)

    def clear(self):
        """Removes all faults."""
        with self._changed:
            self._rules, self._by_number = [], {}

    def reset(self):
        """Removes all faults, and counts requests from 1 again."""
        with self._changed:
            self._rules, self._by_number, self.log = [], {}, []

    def take(self, method, target, access_key):
        """Returns the request's line of the log, and its faults."""
        with self._changed:
            request = Request(len(self.log) + 1, method, target, access_key)
            self.log.append(request)
            found = [rule.fault for rule in self._rules if rule.hit(request)]
            if request.number in self._by_number:
                found.insert(0, self._by_number[request.number])
            ends = [fault for fault in found if not fault.adds_up][:1]
            faults = [fault for fault in found if fault.adds_up] + ends
            request.fault = ", ".join(fault.name for fault in faults)
            self._changed.notify_all()
            return request, faults

    def requests(self, method=None, path=""):
        """Such requests in the log."""
        with self._changed:
            return [request for request in self.log if request.is_like(method, path)]

    def count(self, method=None, path=""):
        return len(self.requests(method, path))

    def wait_for_request(self, method=None, path="", count=1):
        """Waits until so many such requests are in the log."""
        with self._changed:
            if not self._changed.wait_for(
                    lambda: sum(each.is_like(method, path) for each in self.log) >= count, WAIT_S):
                raise TimeoutError(f"no {method or 'request'} {path}")
