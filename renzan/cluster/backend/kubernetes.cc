#include "renzan/cluster/backend/kubernetes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/cluster/backend/kubernetes_documents.h"
#include "renzan/cluster/backend/kubernetes_log.h"
#include "renzan/cluster/backend/kubernetes_operations.h"
#include "renzan/cluster/backend/kubernetes_submission.h"
#include "renzan/cluster/core/order/grand_challenge.h"
#include "renzan/cluster/kubernetes/api/http_api.h"
#include "renzan/cluster/kubernetes/api/kube_config.h"
#include "renzan/cluster/kubernetes/controller/job_facts.h"
#include "renzan/cluster/kubernetes/controller/observe.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/cluster_documents.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster {
namespace {

using kubernetes::ApiError;
using kubernetes::GangJob;
using nlohmann::json;

constexpr TimeMs kShownAfterEndMs = kHour;

GangJob JobFrom(json object) {
  return kubernetes::GangJobFrom(std::make_shared<const json>(std::move(object)));
}

// A number, or nothing.
std::optional<JobId> JobNumber(const std::string& job) {
  JobId number = 0;
  const char* const end = job.data() + job.size();
  if (std::from_chars(job.data(), end, number).ptr != end || number <= 0) return std::nullopt;
  return number;
}

bool Matches(const GangJob& job, const JobsQuery& query, TimeMs now) {
  const RecordState state = job.status.state;
  return (query.queue.empty() || job.spec.queue == query.queue) &&
         (query.user.empty() || job.ns == query.user) &&
         (query.state.empty() || query.state == NameOf(state)) &&
         (query.all || !HasEnded(state) || job.status.ended.value_or(0) >= now - kShownAfterEndMs);
}

class KubernetesBackend : public Backend {
 public:
  KubernetesBackend(std::unique_ptr<kubernetes::Api> api, std::unique_ptr<kubernetes::PodLogs> logs,
                    KubernetesTarget target, const Clock& clock)
      : api_(std::move(api)), logs_(std::move(logs)), target_(std::move(target)), clock_(clock) {}

  std::string User() override { return target_.ns; }

  Document ListJobs(const JobsQuery& query) override {
    if (!query.state.empty() && !RecordStateNamed(query.state))
      Fail(ErrorCode::kUsage, "unknown state of a job: {}", query.state);
    Jobs found = VisibleJobs();
    std::erase_if(found.jobs, [&](const GangJob& job) { return !Matches(job, query, Now()); });
    int64_t ended = std::count_if(found.jobs.begin(), found.jobs.end(),
                                  [](const GangJob& job) { return HasEnded(job.status.state); });
    const int64_t more = std::max<int64_t>(0, ended - query.limit);
    Document jobs = Document::array();
    for (const GangJob& job : found.jobs)
      if (!HasEnded(job.status.state) || ended-- <= query.limit) jobs.push_back(JobDocument(job));
    return {{"jobs", jobs}, {"more", more}, {"note", found.note}, {"unreadable", found.unreadable}};
  }

  Document ShowJob(const std::string& name) override {
    const GangJob job = Find(name);
    const auto list = [&](const kubernetes::Kind& kind, const kubernetes::Selector& selector) {
      try {
        return api_->List(kind, job.ns, selector).at("items");
      } catch (const ApiError& error) {
        // A user who may see jobs need not be allowed to see more.
        if (!error.is_forbidden()) throw;
        return json::array();
      }
    };
    return ShownJobDocument(
        job,
        list(kubernetes::Pods(),
             {.labels = fmt::format("{}={}", kubernetes::kJobNameLabel, job.name)}),
        list(kubernetes::Events(), {.fields = "involvedObject.uid=" + job.uid}), Now());
  }

  Document StateOfJob(const std::string& name) override {
    const kubernetes::GangJobStatus status = Find(name).status;
    return {{"state", NameOf(status.state)},
            {"attempts", status.attempts},
            {"exit_code", status.exit_code ? Document(*status.exit_code) : Document()},
            {"message", status.message}};
  }

  Submitted Submit(const Submission& submission) override {
    const json object = GangJobOf(submission, target_.ns, target_.only_namespace);
    const std::string ns = TextAt(object, {"metadata", "namespace"});
    try {
      const GangJob job = JobFrom(api_->Create(kubernetes::GangJobs(), ns, object));
      return {.job = job.path(), .id = std::nullopt, .name = job.name, .ns = job.ns};
    } catch (const ApiError& error) {
      if (!error.is_already_exists()) throw;
      Fail(ErrorCode::kCantCreate,
           "there is a job {}/{} already: give another --name, or delete that one with `kubectl "
           "delete gangjob -n {} {}`",
           ns, TextAt(object, {"metadata", "name"}), ns, TextAt(object, {"metadata", "name"}));
    }
  }

  JobText JobAgain(const std::string& name) override {
    const GangJob job = Find(name);
    return {.yaml = RepeatedGangJob(job).dump(), .source = "job " + job.path()};
  }

  std::string ActOn(const std::string& name, JobAction action) override {
    const GangJob job = Find(name);
    const RecordState state = job.status.state;
    if (HasEnded(state))
      Fail(ErrorCode::kUsage, "job {} has ended already ({})", name, NameOf(state));
    if (action == JobAction::kCancel) {
      Patch(job, {{"spec", {{"cancelled", true}}}});
      return "";
    }
    if (action == JobAction::kHold || action == JobAction::kRelease) {
      const bool held = action == JobAction::kHold;
      const json patched = Patch(job, {{"spec", {{"held", held}}}});
      // Its schema would drop what it does not know.
      if (IsTrueAt(patched, {"spec", "held"}) != held)
        Fail(ErrorCode::kUnavailable,
             "the cluster's definition of GangJobs is of an earlier version and knows no hold: an "
             "administrator must apply deploy/kubernetes/crds of this one");
      return NameOf(state);
    }
    if (state != RecordState::kRunning)
      Fail(ErrorCode::kUsage, "job {} is not running (state {})", name, NameOf(state));
    if (action == JobAction::kPreempt) {
      Ask(job, kubernetes::kRequestPreempt);
      return "";
    }
    if (!job.spec.checkpoint.on_request)
      Fail(ErrorCode::kUsage,
           "job {} does not checkpoint on request: its specification must set "
           "checkpoint.onRequest",
           name);
    Ask(job, kubernetes::kRequestCheckpoint);
    return NameOf(state);
  }

  Document ChangeJob(const std::string& name, const spec::JobChange& change) override {
    const GangJob job = Find(name);
    const RecordState state = job.status.state;
    if (HasEnded(state))
      Fail(ErrorCode::kUsage, "job {} has ended already ({})", name, NameOf(state));
    const SpecChange wanted = SpecChangeOf(job, change);
    if (!wanted.what.empty()) Patch(job, {{"spec", json::parse(wanted.patch)}});
    return {{"state", NameOf(state)},
            {"changed", wanted.what},
            {"note", wanted.note.empty() ? Document() : Document(wanted.note)}};
  }

  void ReadLog(const std::string& name, const LogQuery& query,
               const std::function<void(std::string_view)>& take) override {
    const GangJob job = Find(name);
    ReadWorkerLog(
        *api_, *logs_, [&] { return JobFrom(api_->Get(kubernetes::GangJobs(), job.ns, job.name)); },
        query, take, SystemWaiting());
  }

  Document ListNodes() override { return spec::NodesDocument(ObserveAll().snapshot); }

  std::string ChangeNode(const std::string& node, NodeAction action,
                         double notice_seconds) override {
    switch (action) {
      case NodeAction::kFail:
        Fail(ErrorCode::kUsage,
             "`renzan nodes fail` only simulates a failure, on this machine: Kubernetes detects by "
             "itself that a node has failed");
      case NodeAction::kCordon:
        CordonNode(*api_, node, true);
        return "";
      case NodeAction::kRestore:
        CordonNode(*api_, node, false);
        return "";
      case NodeAction::kDrain:
        break;
    }
    if (notice_seconds >= 0)
      Fail(ErrorCode::kUsage,
           "--notice: on Kubernetes the cloud announces with a taint that a node goes away: leave "
           "it out, or taint the node yourself");
    CordonNode(*api_, node, true);
    for (const GangJob& job : VisibleJobs().jobs)
      if (job.status.state == RecordState::kRunning && job.spec.checkpoint.on_stop &&
          std::any_of(job.status.placement.begin(), job.status.placement.end(),
                      [&](const auto& share) { return share.node == node; }))
        Ask(job, kubernetes::kRequestPreempt);
    return "";
  }

  Document Status() override {
    const Jobs all = VisibleJobs();
    const kubernetes::ClusterPolicy policy = Policy();
    Document use = spec::UseDocument(ObserveAll(policy).snapshot, policy.limits.max_priority);
    Document status = {{"version", RENZAN_VERSION},
                       {"server", target_.server},
                       {"leader", LeaderOf(*api_)},
                       {"nodes", use["nodes"]}};
    for (const char* state : kRecordStates) status["jobs"][state] = 0;
    for (const GangJob& job : all.jobs) {
      Document& count = status["jobs"][NameOf(job.status.state)];
      count = count.get<int>() + 1;
    }
    for (const char* part : {"resources", "pools", "queues", "users"}) status[part] = use[part];
    status["unreadable"] = all.unreadable;
    for (Document& pool : status["pools"]) pool["node_hours"] = pool["interruptions"] = nullptr;
    return status;
  }

  Document Usage(const UsageQuery& query) override {
    if (query.from || query.to)
      Fail(ErrorCode::kUsage,
           "--from and --to are for a daemon: a GangJob does not say when its earlier attempts "
           "ran. Leave them out, or ask Prometheus for renzan_gpu_seconds_total of that time");
    const Jobs found = VisibleJobs();
    Document usage = UsageDocument(found.jobs, Now());
    usage["unreadable"] = found.unreadable;
    usage["fair_shares"] = FairShares();
    usage["note"] =
        fmt::format("of GangJobs that exist{}; costs and loans are not recorded on Kubernetes",
                    target_.only_namespace ? " in the namespace " + target_.ns : "");
    if (!found.note.is_null())
      usage["note"] = usage["note"].get<std::string>() + "; " + found.note.get<std::string>();
    return usage;
  }

  void OverrideQuota(const std::string& user, int64_t max_gpus, double seconds) override {
    OverrideCap(
        *api_,
        {.ns = user, .max_gpus = max_gpus, .until = Now() + static_cast<TimeMs>(seconds * kSecond)},
        Now());
  }

  View Observe() override {
    const kubernetes::ClusterPolicy policy = Policy();
    observed_ = ObserveAll(policy);
    limits_ = policy.limits;
    return {.snapshot = observed_.snapshot,
            .scheduling = policy.scheduling,
            .user = target_.ns,
            .most_priority = [this](const Job& job) {
              const Snapshot& snapshot = observed_.snapshot;
              return spec::MostPriority(
                  snapshot.queues[job.queue].rights,
                  kubernetes::SubmitterOf(limits_, snapshot.users[job.user].name));
            }};
  }

  Job Imagine(const Submission& submission, const View&, Snapshot& snapshot) override {
    const GangJob object =
        JobFrom(GangJobOf(submission, target_.ns, target_.only_namespace, /*needs_image=*/false));
    Job job;
    kubernetes::Inventory no_nodes(snapshot);
    kubernetes::Specify(object, no_nodes, snapshot, job);
    // An unknown queue is an input that does not exist, as of a daemon.
    if (!job.held.empty())
      Fail(kubernetes::QueueOf(object, snapshot) == nullptr ? ErrorCode::kNoInput
                                                            : ErrorCode::kConfig,
           "{}: {}", submission.job.source, job.held);
    // Only the API server knows who would submit it.
    spec::Submitter submitter = kubernetes::SubmitterOf(limits_, object.ns);
    submitter.checked = spec::Submitter::Checked::kYes;
    if (const std::string why = spec::WhyQueueRefuses(snapshot.queues[job.queue], snapshot.queues,
                                                      object.spec, submitter);
        !why.empty())
      Fail(ErrorCode::kNoPermission, "{}: {}", submission.job.source, why);
    kubernetes::KeepOut(observed_, object.node_filter, snapshot, job);
    job.run_time = observed_.ended.Predict(object);
    job.submitted = job.waiting_since = snapshot.now;
    return job;
  }

  Document PlanChallenge(const Submission& submission) override {
    const View view = Observe();
    Snapshot snapshot = view.snapshot;
    const Job job = Imagine(submission, view, snapshot);
    const GrandChallengePlan plan = PlanGrandChallenge(snapshot, job);
    return {{"stops", plan.stops},
            {"loses_work", plan.loses_work},
            {"bytes_to_save", plan.bytes_to_save},
            {"gpu_seconds_lost", plan.gpu_seconds_lost},
            {"earliest_start", plan.earliest_start},
            {"fits", !plan.placement.empty()}};
  }

 private:
  struct Jobs {
    std::vector<GangJob> jobs;  // earliest first
    Document note;              // which jobs are missing; null: none
    // why others are left out, as the controller leaves them out
    std::vector<std::string> unreadable;
  };

  TimeMs Now() const { return clock_.UnixMs(); }

  static Jobs JobsOf(json items) {
    Jobs found;
    for (json& item : items) try {
        found.jobs.push_back(JobFrom(std::move(item)));
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kData) throw;
        found.unreadable.emplace_back(error.what());
      }
    return found;
  }

  Jobs VisibleJobs() {
    Document note;
    json list;
    if (target_.only_namespace) {
      list = api_->List(kubernetes::GangJobs(), target_.ns, {});
    } else {
      try {
        list = api_->List(kubernetes::GangJobs(), "", {});
      } catch (const ApiError& error) {
        if (!error.is_forbidden()) throw;
        list = api_->List(kubernetes::GangJobs(), target_.ns, {});
        note = fmt::format("only the namespace {}: you may not list other namespaces' jobs",
                           target_.ns);
      }
    }
    Jobs found = JobsOf(std::move(list.at("items")));
    found.note = std::move(note);
    kubernetes::SortByArrival(found.jobs);
    // Of two with the same number, the first.
    for (auto job = found.jobs.rbegin(); job != found.jobs.rend(); ++job)
      if (job->status.id > 0) names_[job->status.id] = {job->ns, job->name};
    return found;
  }

  // The job that had this number when jobs were listed, if it still does.
  std::optional<GangJob> FindListed(JobId number) {
    const auto at = names_.find(number);
    if (at == names_.end()) return std::nullopt;
    try {
      GangJob job = JobFrom(api_->Get(kubernetes::GangJobs(), at->second.first, at->second.second));
      if (job.status.id == number) return job;
    } catch (const ApiError& error) {
      if (!error.is_not_found()) throw;
    }
    return std::nullopt;
  }

  GangJob Find(const std::string& name) {
    if (const auto number = JobNumber(name)) {
      if (std::optional<GangJob> job = FindListed(*number)) return std::move(*job);
      Jobs found = VisibleJobs();
      for (GangJob& job : found.jobs)
        if (job.status.id == *number) return std::move(job);
      Fail(
          ErrorCode::kNoInput, "there is no job {}{}: `renzan jobs --all` lists them", name,
          found.note.is_null() && !target_.only_namespace ? "" : " in the namespace " + target_.ns);
    }
    const size_t slash = name.find('/');
    const std::string ns = slash == std::string::npos ? target_.ns : name.substr(0, slash);
    const std::string own = slash == std::string::npos ? name : name.substr(slash + 1);
    if (ns.empty() || own.empty() || own.find('/') != std::string::npos)
      Fail(ErrorCode::kUsage, "'{}' does not name a job: give its number, NAME or NAMESPACE/NAME",
           name);
    return JobFrom(api_->Get(kubernetes::GangJobs(), ns, own));
  }

  // With the uid as a precondition: not for a later job of that name.
  json Patch(const GangJob& job, json patch) {
    patch["metadata"]["uid"] = job.uid;
    return api_->MergePatch(kubernetes::GangJobs(), job.ns, job.name, patch);
  }

  void Ask(const GangJob& job, const char* annotation) {
    Patch(job,
          {{"metadata",
            {{"annotations", {{annotation, kubernetes::MicroTimeText(clock_.UnixSeconds())}}}}}});
  }

  json List(const kubernetes::Kind& kind) { return api_->List(kind, "", {}).at("items"); }

  // The policy in force; the defaults if there is none.
  kubernetes::ClusterPolicy Policy() {
    for (const json& policy : List(kubernetes::ClusterPolicies()))
      if (TextAt(policy, {"metadata", "name"}) == kubernetes::kPolicyName)
        return kubernetes::HoldingPolicy(policy);
    return {};
  }

  // Empty if the caller may not see queues.
  Document FairShares() {
    try {
      return FairSharesDocument(List(kubernetes::Queues()), Now());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNoPermission) throw;
      return Document::array();
    }
  }

  kubernetes::Observed ObserveAll() { return ObserveAll(Policy()); }

  kubernetes::Observed ObserveAll(const kubernetes::ClusterPolicy& policy) {
    std::vector<GangJob> jobs = JobsOf(List(kubernetes::GangJobs())).jobs;
    const json nodes = List(kubernetes::Nodes()), pools = List(kubernetes::NodePools()),
               queues = List(kubernetes::Queues()), pods = List(kubernetes::Pods());
    return kubernetes::Observe(
        {.nodes = nodes, .pools = pools, .queues = queues, .pods = pods, .jobs = std::move(jobs)},
        policy, Now());
  }

  const std::unique_ptr<kubernetes::Api> api_;
  const std::unique_ptr<kubernetes::PodLogs> logs_;
  const KubernetesTarget target_;
  const Clock& clock_;
  // Namespaces and names of jobs that have been listed: to find many by number takes one list.
  std::map<JobId, std::pair<std::string, std::string>> names_;
  kubernetes::Observed observed_;       // by Observe()
  kubernetes::NamespaceLimits limits_;  // likewise
};

}  // namespace

std::unique_ptr<Backend> MakeKubernetesBackend(std::unique_ptr<kubernetes::Api> api,
                                               std::unique_ptr<kubernetes::PodLogs> logs,
                                               KubernetesTarget target, const Clock& clock) {
  return std::make_unique<KubernetesBackend>(std::move(api), std::move(logs), std::move(target),
                                             clock);
}

std::unique_ptr<Backend> MakeKubernetesBackend(const std::string& context, const std::string& ns,
                                               const client::Environment& environment) {
  const kubernetes::Access access =
      kubernetes::FindAccess({.context = context, .environment = environment});
  return MakeKubernetesBackend(std::make_unique<kubernetes::HttpApi>(access),
                               kubernetes::MakeHttpPodLogs(access),
                               {.server = fmt::format("{} ({})", access.server, access.from),
                                .ns = ns.empty() ? access.default_namespace : ns,
                                .only_namespace = !ns.empty()});
}

}  // namespace renzan::cluster
