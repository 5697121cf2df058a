#pragma once

// The rights of queues: how they are configured, and whether a queue takes a job. All of it is
// here, for the daemon and for Kubernetes; a further right is a field of QueueRights, its lines in
// queue_rights.cc, and a property of deploy/kubernetes/crds/queues.yaml. Pure functions.

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/cluster/core/queue_rights.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/spec/described_json.h"
#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::spec {

// Whoever submits a job.
struct Submitter {
  std::string user;  // empty: not known
  std::vector<std::string> groups;
  std::string ns;  // of a GangJob; empty: the job is a daemon's
  // Whoever administers the cluster may use every queue, with any priority.
  bool administrator = false;
  // Of jobs in queues that say nothing about it: limits.max_priority.
  int64_t max_priority = std::numeric_limits<int>::max();
  // Where `user` is not known: whether whoever knew has checked that the queue's members include
  // them.
  enum class Checked {
    kNo,        // nobody checks that
    kTooEarly,  // somebody does, but the job was in its queue before
    kYes,
  };
  Checked checked = Checked::kNo;
};

// The keys of a queue in cluster.yaml or, with `namespaces`, of a Queue's spec as
// snake_case.
void DescribeRights(ConfigFields& fields, QueueRights& rights, bool namespaces);

// The fields of a queue in JSON; those with their default are absent.
template <typename Io>
void DescribeRightsJson(Io& io, QueueRights& rights) {
  io("only_preemptible", AbsentIfFalse{rights.only_preemptible});
  io("members", AbsentIfNone<QueueMembers>{rights.members});
  io("max_priority", AbsentIfNone<int>{rights.max_priority});
}
template <typename Io>
void Describe(Io& io, QueueMembers& members) {
  io("users", members.users);
  io("groups", members.groups);
  io("namespaces", members.namespaces);
}

// Whether it is the parent of one of the queues, which holds them.
bool IsParent(std::span<const Queue> queues, const Queue& queue);

// The highest priority that the submitter's jobs may have in the queue.
int64_t MostPriority(const QueueRights& rights, const Submitter& submitter);

// "" if the queue takes the job; otherwise the sentence that says why not, and what to do.
// `queues`: all that there are.
std::string WhyQueueRefuses(const Queue& queue, std::span<const Queue> queues, const JobSpec& spec,
                            const Submitter& submitter);

// Why this name stands for nobody here; "": it stands for somebody.
using WhyNobody = std::function<std::string(const std::string& name)>;
// Which of the queues' members, by queue, stand for nobody, one sentence for each. Throws Error
// kConfig if that leaves a queue without any.
std::vector<std::string> CheckMembers(const std::map<std::string, QueueRights>& queues,
                                      const WhyNobody& of_user, const WhyNobody& of_group);

}  // namespace renzan::cluster::spec
