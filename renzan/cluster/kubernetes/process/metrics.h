#pragma once

// What operators see of a replica: Prometheus's text format. Counters belong to this process;
// another leader starts at 0.
//
// How far watches lag: the API says neither when an event's object changed nor how many more events
// there are, so all that can be known is how long a watch has been silent
// (renzan_watch_silence_seconds; a server sends bookmarks about once a minute), and how long what
// it has delivered waits here (renzan_change_delay_seconds).

#include <map>
#include <string>

#include "renzan/cluster/kubernetes/api/watch.h"
#include "renzan/cluster/kubernetes/controller/controller.h"
#include "renzan/cluster/kubernetes/process/counted_api.h"
#include "renzan/cluster/record/recorder.h"

namespace renzan::cluster::kubernetes {

struct LeaderVitals {
  const Controller& controller;
  std::map<std::string, WatchCounts> watches;  // by the plural of their kind
  // From the delivery of a change by its watch until the controller has taken it.
  const Histogram& change_delay_seconds;
  record::RecorderCounts recorder;
  double now;  // MonotonicSeconds() now
};

std::string MetricsOfLeader(const LeaderVitals& vitals, const ApiCounts::Values& requests);
// The metrics of a replica that does not lead.
std::string MetricsOfFollower(const ApiCounts::Values& requests);
// Those that every replica with an admission webhook adds. `expires`: in seconds since 1970.
std::string MetricsOfCertificate(double expires);

}  // namespace renzan::cluster::kubernetes
