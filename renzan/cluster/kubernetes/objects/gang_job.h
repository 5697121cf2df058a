#pragma once

// A GangJob: what its user wants (spec: a pod template and what the scheduler has to know) and what
// has happened to it (status, which only the leading controller writes and which is all that a new
// leader knows).

#include <algorithm>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/core/engine/job_facts.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/kubernetes/objects/amounts.h"
#include "renzan/cluster/kubernetes/objects/node_filter.h"
#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::kubernetes {

struct GangJobStatus : JobFacts, AttemptFacts {
  JobId id = 0;                    // 0: not admitted yet
  TimeMs moved = 0;                // when it was last seen to be in another queue than before
  int64_t started_generation = 0;  // generation of the spec that the attempt was started with
  NamedPlacement reservation;      // nodes that are kept for it while it is pending
  std::optional<TimeMs> checkpoint_cost;  // as measured at its stops
  // The latest of the user's requests (kinds.h) that have been honoured.
  std::string checkpoint_request, preempt_request;
  // The term of the leader that wrote it: each leader's is higher than all it has seen.
  int64_t term = 0;
  std::string writer;
  std::string reason;  // of the conditions: one word
  int64_t observed_generation = 0;

  // Whether the workers match the spec, as far as has been observed.
  bool is_spec_applied() const {
    return placement.empty() || started_generation == observed_generation;
  }
  bool operator==(const GangJobStatus&) const = default;
};

struct GangJob {
  std::string ns, name, uid, resource_version;
  int64_t generation = 0;
  TimeMs created = 0;
  bool deleting = false;
  bool cancelled = false;  // spec.cancelled
  bool held = false;       // spec.held
  std::string checkpoint_request, preempt_request;
  TimeMs start_timeout_ms = 0;  // 0: none
  spec::JobSpec spec;           // without command and resources, which are the template's
  Amounts per_worker;
  Labels node_selector;
  NodeFilter node_filter;
  std::string invalid;  // why the spec cannot be used; empty: it can
  GangJobStatus status;
  std::shared_ptr<const nlohmann::json> object;

  std::string path() const { return ns + "/" + name; }
  // It has been in its queue since then, or for a shorter time.
  TimeMs entered() const { return std::max(created, status.moved); }
};

// An invalid spec is reported in `invalid`; a status that cannot be read throws Error kData.
GangJob GangJobFrom(std::shared_ptr<const nlohmann::json> object);

// GPUs of the workers that it has, or else of those that it wants.
int64_t GpusOf(const GangJob& job);

// The object's `status`. `before`: the current one; conditions that change get the time `now`.
nlohmann::json StatusObject(const GangJob& job, const nlohmann::json& before, TimeMs now);

}  // namespace renzan::cluster::kubernetes
