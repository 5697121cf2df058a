#pragma once

// Keeps an owner informed of all objects of one kind: lists them, then watches, in a thread of its
// own. Connections that end are resumed after the last version seen. When the server no longer has
// that version, or sends something invalid, the objects are listed again and the owner is told the
// difference: it neither notices the failure nor sees an object twice.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "renzan/base/clock.h"
#include "renzan/cluster/kubernetes/api/known_objects.h"

namespace renzan::cluster::kubernetes {

struct WatchOptions {
  Kind kind;
  std::string ns = {};
  Selector selector = {};
  // The delay after a failure: doubles with each consecutive one, and a random part of up to half
  // is left out.
  double first_backoff_seconds = 0.5;
  double longest_backoff_seconds = 30;
  uint64_t seed = 0;  // for that randomness: different in each process
};

struct WatchCounts {
  int64_t lists = 0;         // complete ones; each but the first is a relist
  int64_t reconnects = 0;    // watches that continued where another ended
  int64_t failures = 0;      // of requests
  int64_t events = 0;        // received, with bookmarks
  double last_seconds = -1;  // MonotonicSeconds() of the last list or event; -1: none yet
};

class Watch {
 public:
  // Starts. `deliver` is called in Watch's thread, in order, and must neither block nor throw.
  // `report` is called there too, once for a failure that keeps repeating; it does not report
  // connections that the server ended regularly. `clock` must outlive this object.
  Watch(const ApiFactory& make_api, WatchOptions options, std::function<void(WatchChange)> deliver,
        std::function<void(const Error&)> report, const Clock& clock = SystemClock());
  // Stops: returns within milliseconds unless `deliver` is busy. Afterwards nothing is called.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Safe from any thread.
  WatchCounts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace renzan::cluster::kubernetes
