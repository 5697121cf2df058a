#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>

#include "renzan/cluster/core/engine/record_state.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/local/controller/accounting.h"
#include "renzan/cluster/local/server/api_json.h"
#include "renzan/cluster/spec/snapshot_json.h"

namespace renzan::cluster::local {
namespace {

// In the units of the API: cores, MiB, devices. Omits unlimited amounts.
Json AmountsJson(const Snapshot& snapshot, const Resources& resources) {
  Json out = Json::object();
  for (size_t kind = 0; kind < snapshot.resource_names.size(); ++kind) {
    const int64_t amount = resources[static_cast<int>(kind)];
    if (amount == kUnlimited) continue;
    const std::string& name = snapshot.resource_names[kind];
    out[name] = kind == kCpu ? Json(static_cast<double>(amount) / 1000) : Json(amount);
  }
  return out;
}

struct Totals {
  std::map<std::string, int> nodes = {{"ready", 0}, {"draining", 0}, {"booting", 0}, {"gone", 0}};
  Resources capacity, used;
  std::vector<Resources> by_queue;
  std::vector<int64_t> gpus_by_user;
  std::vector<int> pending, running;  // jobs by queue
  std::vector<int> by_pool;           // existing nodes
};

Totals Sum(const Snapshot& snapshot) {
  Totals totals;
  totals.by_queue.resize(snapshot.queues.size());
  totals.pending.resize(snapshot.queues.size());
  totals.running.resize(snapshot.queues.size());
  totals.gpus_by_user.resize(snapshot.users.size());
  totals.by_pool.resize(snapshot.pools.size());
  for (const Node& node : snapshot.nodes) {
    ++totals.nodes[NameOf(node.state)];
    const bool there = IsThere(node.state);
    if (there) totals.capacity += node.capacity;
    if (there && node.pool >= 0) ++totals.by_pool[node.pool];
  }
  for (const Job& job : snapshot.jobs) {
    const Resources used =
        snapshot.worker_requests[job.request].per_worker * NumWorkers(job.placement);
    totals.used += used;
    totals.by_queue[job.queue] += used;
    totals.gpus_by_user[job.user] += used.gpu();
    ++(job.placement.empty() ? totals.pending : totals.running)[job.queue];
  }
  return totals;
}

Json QueueJson(const Snapshot& snapshot, const Totals& totals, size_t index) {
  const Queue& queue = snapshot.queues[index];
  const Resources& used = totals.by_queue[index];
  Resources borrowed;
  for (const int kind : GuaranteedKinds(snapshot))
    borrowed[kind] = std::max<int64_t>(0, used[kind] - queue.guaranteed[kind]);
  return {{"name", queue.name},
          {"removed", queue.removed},
          {"guaranteed", AmountsJson(snapshot, queue.guaranteed)},
          {"limit", AmountsJson(snapshot, queue.limit)},
          {"used", AmountsJson(snapshot, used)},
          {"borrowed", AmountsJson(snapshot, borrowed)},
          {"pending", totals.pending[index]},
          {"running", totals.running[index]}};
}

}  // namespace

ApiResponse ClusterStatus(const ApiContext& context, const ApiRequest&) {
  std::map<std::string, int64_t> jobs;
  std::vector<PoolHistory> pools;
  std::string violation;
  std::vector<std::string> faults;
  const Snapshot snapshot = context.loop.Run([&](Controller& controller) {
    jobs = controller.store().CountByState();
    pools = controller.pools().Histories();
    violation = controller.violation();
    faults = controller.faults();
    return controller.snapshot();
  });
  const Totals totals = Sum(snapshot);
  Json body = {
      {"version", RENZAN_VERSION},  {"pid", ::getpid()},
      {"uid", context.uid},         {"state_dir", context.state_dir},
      {"started", context.started}, {"tcp", context.tcp.empty() ? Json() : Json(context.tcp)},
      {"nodes", totals.nodes}};
  body["scheduling"] = {
      {"min_between_resizes_ms", context.scheduling.min_between_resizes_ms},
      {"max_checkpoint_interval_ms", context.scheduling.max_checkpoint_interval_ms},
      {"overdue_after_ms", context.scheduling.overdue_after_ms},
      {"service_levels_ms", context.scheduling.levels.thresholds_ms},
      {"gittins", context.scheduling.levels.gittins}};
  for (const char* state : kRecordStates) body["jobs"][state] = jobs[state];
  const Json capacity = AmountsJson(snapshot, totals.capacity);
  const Json used = AmountsJson(snapshot, totals.used);
  body["resources"] = Json::array();
  for (const auto& [name, amount] : capacity.items())
    body["resources"].push_back({{"name", name}, {"capacity", amount}, {"used", used[name]}});
  body["worker_classes"] = Json::object();
  for (const auto& [name, request] : context.worker_classes)
    body["worker_classes"][name] = {{"cpu", request.cpu},
                                    {"memory", request.memory},
                                    {"gpu", request.gpu},
                                    {"other", request.other}};
  if (!violation.empty()) body["violation"] = violation;
  if (!faults.empty()) body["faults"] = faults;
  body["pools"] = Json::array();
  for (size_t pool = 0; pool < pools.size(); ++pool)
    body["pools"].push_back(
        {{"name", pools[pool].seen.name},
         {"nodes", totals.by_pool[pool]},
         {"price_per_hour", snapshot.pools[pool].price_per_hour},
         {"node_hours", static_cast<double>(pools[pool].seen.node_ms) / 3'600'000},
         {"interruptions", pools[pool].seen.interruptions},
         {"interruptions_per_hour", snapshot.pools[pool].interruptions_per_hour}});
  body["queues"] = Json::array();
  for (size_t queue = 0; queue < snapshot.queues.size(); ++queue)
    body["queues"].push_back(QueueJson(snapshot, totals, queue));
  body["users"] = Json::array();
  for (size_t user = 0; user < snapshot.users.size(); ++user) {
    const int64_t cap = snapshot.users[user].CapAt(snapshot.now);
    body["users"].push_back({{"name", snapshot.users[user].name},
                             {"max_gpus", cap == kUnlimited ? Json() : Json(cap)},
                             {"gpus", totals.gpus_by_user[user]}});
  }
  return {.body = BodyOf(body)};
}

ApiResponse ClusterUsage(const ApiContext& context, const ApiRequest&) {
  JobList list;
  std::vector<UsageRecord> of_jobs;
  std::map<QueueAndUser, UsageRecord> all;
  std::vector<LoanRecord> loans;
  context.loop.Run([&](Controller& controller) {
    list = controller.List({.most_ended = kMaxEndedListed});
    for (const JobView& job : list.jobs) of_jobs.push_back(controller.usage().Of(job.record.id));
    all = controller.UsageUntilNow();
    loans = controller.usage().Loans();
  });
  Json jobs = Json::array();
  for (size_t i = 0; i < of_jobs.size(); ++i) {
    const JobRecord& job = list.jobs[i].record;
    jobs.push_back({{"id", job.id},
                    {"queue", job.queue},
                    {"user", job.user},
                    {"gpu_seconds", of_jobs[i].gpu_seconds},
                    {"cost", of_jobs[i].cost}});
  }
  std::map<std::string, UsageRecord> queues, users;
  for (const auto& [owner, usage] : all)
    for (UsageRecord* sum : {&queues[owner.queue], &users[owner.user]}) {
      sum->gpu_seconds += usage.gpu_seconds;
      sum->cost += usage.cost;
    }
  for (const LoanRecord& loan : loans) queues[loan.lender];
  Json by_queue = Json::array(), by_user = Json::array();
  for (const auto& [name, usage] : queues) {
    double borrowed = 0;
    Json lent = Json::array();
    for (const LoanRecord& loan : loans) {
      if (loan.borrower == name) borrowed += loan.gpu_seconds;
      if (loan.lender == name)
        lent.push_back({{"to", loan.borrower}, {"gpu_seconds", loan.gpu_seconds}});
    }
    by_queue.push_back({{"name", name},
                        {"gpu_seconds", usage.gpu_seconds},
                        {"cost", usage.cost},
                        {"borrowed_gpu_seconds", borrowed},
                        {"lent", lent}});
  }
  for (const auto& [name, usage] : users)
    by_user.push_back({{"name", name}, {"gpu_seconds", usage.gpu_seconds}, {"cost", usage.cost}});
  return {
      .body = BodyOf(
          {{"jobs", jobs}, {"more_jobs", list.more}, {"queues", by_queue}, {"users", by_user}})};
}

ApiResponse ClusterSnapshot(const ApiContext& context, const ApiRequest&) {
  return {.body = spec::SnapshotToJson(
              context.loop.Run([](Controller& controller) { return controller.snapshot(); }))};
}

ApiResponse ShutDown(const ApiContext& context, const ApiRequest& request) {
  context.loop.Run(
      [&](Controller& controller) { controller.access().RequireOperator(request.caller); });
  return {.body = "{}\n", .shut_down = true};
}

}  // namespace renzan::cluster::local
