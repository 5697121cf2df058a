#include "renzan/cluster/local/controller/recovered_job.h"

#include <algorithm>
#include <string>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster::local {
namespace {

// As much of an unreadable specification as the record preserves.
spec::JobSpec SpecFromRecord(const JobRecord& record) {
  spec::JobSpec spec;
  spec.name = record.name;
  spec.queue = record.queue;
  spec.priority = record.priority;
  spec.replicas = fmt::format("{}..{}", record.min_workers, record.max_workers);
  spec.resources.cpu = static_cast<double>(record.cpu_millis) / 1000;
  spec.resources.memory = fmt::format("{}MiB", record.memory_mib);
  spec.resources.gpu = record.gpus;
  spec.command = {"false"};  // never run: the job is held
  return spec;
}

Job MakeHeldJob(Snapshot& snapshot, const JobRecord& record, spec::JobSpec spec,
                const std::string& why) {
  spec.resources.other.clear();
  spec.constraints.topology.clear();
  spec.constraints.topology_required = false;
  Job job = spec::MakeJob(snapshot, spec, record.user, record.id, record.submitted);
  job.held = fmt::format(
      "the configuration has changed since it was submitted ({}): start the daemon with the "
      "configuration that it was submitted under, or cancel the job",
      why);
  LogError("job {} is held: {}", record.id, job.held);
  return job;
}

Job MakeJobFor(Snapshot& snapshot, const JobRecord& record, const spec::JobSpec& spec) {
  const bool has_queue =
      std::any_of(snapshot.queues.begin(), snapshot.queues.end(),
                  [&](const Queue& queue) { return queue.name == record.queue; });
  if (!has_queue) {
    LogWarning(
        "the configuration no longer has queue {}: its running jobs continue, the others are held",
        record.queue);
    snapshot.queues.push_back({.name = record.queue, .removed = true});
  }
  try {
    return spec::MakeJob(snapshot, spec, record.user, record.id, record.submitted);
  } catch (const Error& error) {
    return MakeHeldJob(snapshot, record, spec, error.what());
  }
}

}  // namespace

RecoveredJob JobFromRecord(Snapshot& snapshot, const JobRecord& record) {
  RecoveredJob recovered;
  std::string unreadable;
  try {
    recovered.spec = spec::ReadJobSpec(record.spec, fmt::format("job {}", record.id));
  } catch (const Error& error) {
    recovered.spec = SpecFromRecord(record);
    unreadable = record.damaged;
    if (unreadable.empty()) {
      unreadable = fmt::format("this version cannot read its specification: {}", error.what());
      LogError("job {} is held: {}", record.id, unreadable);
    }
  }
  Job& job = recovered.job = MakeJobFor(snapshot, record, recovered.spec);
  if (!unreadable.empty()) job.held = unreadable + ": cancel the job and submit it again";
  return recovered;
}

}  // namespace renzan::cluster::local
