#pragma once

// A cluster as the verbs see it: this machine's daemon (daemon.h) or Kubernetes (kubernetes.h).
// Each verb is written once, against this interface.
//
// Documents are JSON objects with the same keys from every backend, null where a backend does not
// know a value; times are Unix milliseconds. For one thread at a time. Every function may block
// until the cluster answers and throws Error: kNoInput for a job or node that does not exist,
// kNoPermission, kUnavailable if the cluster does not answer, kUsage for an action that the state
// or this kind of cluster does not allow; the message says what to do next.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/spec/inherited.h"
#include "renzan/cluster/spec/job_change.h"
#include "renzan/cluster/spec/queue_rights.h"
#include "renzan/cluster/spec/worker_classes.h"

namespace renzan::cluster {

using Document = nlohmann::ordered_json;

// A job as its user wrote it, not parsed yet.
struct JobText {
  std::string yaml, source;            // `source` names it in messages
  std::vector<std::string> overrides;  // "key=value"
};

struct Submission {
  JobText job;
  std::string directory;  // absolute: relative paths of the job start there
  // Only on Kubernetes: the containers' image, and a file with the rest of the pod.
  std::string image = {}, pod_template = {};
  // Only for a daemon: what the submitter has, of which the job gets what its key `export` says.
  std::optional<spec::Inherited> inherited = {};
};

struct Submitted {
  std::string job;            // by which other functions identify it
  std::optional<int64_t> id;  // none: not assigned yet
  std::string name;
  std::string ns = {};  // on Kubernetes
};

struct JobsQuery {
  bool all = false;                               // also jobs that ended more than an hour ago
  int64_t limit = 1000;                           // of ended jobs, newest first
  std::string queue = {}, user = {}, state = {};  // only these
};

// A span of time; without either, all that has been used.
struct UsageQuery {
  std::optional<TimeMs> from = {}, to = {};  // from then on; before then
};

// A held job does not start (again) until it is released.
enum class JobAction { kCancel, kPreempt, kCheckpoint, kHold, kRelease };

struct LogQuery {
  int64_t worker = 0;
  int64_t attempt = -1;  // -1: the last one, and later ones as they start
  int64_t tail = -1;     // lines from the end; -1: all
  bool follow = false;   // until the job, or the given attempt, has ended
};

enum class NodeAction { kCordon, kDrain, kFail, kRestore };

// What scheduling decisions are based on.
struct View {
  Snapshot snapshot;
  ScheduleOptions scheduling;
  spec::WorkerClasses worker_classes;
  std::string user;                // User()
  spec::Submitter submitter = {};  // the caller, as queues know them
  bool operates = true;            // may restore nodes, as far as is known
  // The most that a job's user could ask for; not set: ShowJob() says it.
  std::function<int64_t(const Job&)> most_priority = {};
};

class Backend {
 public:
  virtual ~Backend() = default;

  // Whose jobs the caller's are: a user, or on Kubernetes a namespace.
  virtual std::string User() = 0;

  // --- Jobs. `job` is its number, or, on Kubernetes, NAME or NAMESPACE/NAME.

  // {"jobs": [...], "more": number of older ones not listed}; by number. "unreadable", if present,
  // here and in Status() and Usage(): for each job that cannot be read and is left out, why.
  virtual Document ListJobs(const JobsQuery& query) = 0;
  virtual Document ShowJob(const std::string& job) = 0;
  // For who waits for the job's end: only its "state", "attempts", "exit_code" and "message", which
  // cost the cluster little.
  virtual Document StateOfJob(const std::string& job) = 0;
  virtual Submitted Submit(const Submission& submission) = 0;
  // What to submit to run the job again. Fails with kNoPermission for a job of another user.
  virtual JobText JobAgain(const std::string& job) = 0;
  // The job's state afterwards; "" if that is not known yet.
  virtual std::string ActOn(const std::string& job, JobAction action) = 0;
  // {"state": afterwards, "changed": "priority 0 -> 5", or "" if it was so already, "note": what
  // else to know, or null}.
  virtual Document ChangeJob(const std::string& job, const spec::JobChange& change) = 0;
  // Following ends with the job, or with the attempt that the query names. Throws Error
  // kUnavailable if the output breaks off before.
  virtual void ReadLog(const std::string& job, const LogQuery& query,
                       const std::function<void(std::string_view piece)>& take) = 0;

  // --- The cluster.

  virtual Document ListNodes() = 0;
  // `notice_seconds` (for kDrain): when the node goes away; negative: it stays. Returns what has to
  // happen before the action is complete ("its old workers have ended"); "": nothing.
  virtual std::string ChangeNode(const std::string& node, NodeAction action,
                                 double notice_seconds) = 0;
  virtual Document Status() = 0;
  virtual Document Usage(const UsageQuery& query) = 0;
  virtual void OverrideQuota(const std::string& user, int64_t max_gpus, double seconds) = 0;

  // --- For questions that are answered in this process, on a snapshot.

  virtual View Observe() = 0;
  // The job that the submission would become; it is not in the snapshot yet. `snapshot`: the
  // view's, or a changed copy. Throws Error kConfig if the job needs something that the snapshot
  // lacks.
  virtual Job Imagine(const Submission& submission, const View& view, Snapshot& snapshot) = 0;
  // What stopping jobs for a grand challenge would cost.
  virtual Document PlanChallenge(const Submission& submission) = 0;
};

}  // namespace renzan::cluster
