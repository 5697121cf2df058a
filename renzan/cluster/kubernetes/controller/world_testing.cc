#include "renzan/cluster/kubernetes/controller/world_testing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/record/cycle_json.h"
#include "renzan/cluster/record/replay.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

// Ends a stream: it will be continued.
struct Cut {};

// Some cycles, written and read again, must decide the same. Only some, because that takes longer
// than a cycle.
void ReplaySome(const record::CycleView& cycle) {
  if (cycle.number % 16 != 1) return;
  const std::string json = record::CycleToJson(record::CopyOf(cycle));
  EXPECT_EQ(record::DifferenceOnReplay(record::CycleFromJson(json)), "");
}

}  // namespace

Json JobSpec(int replicas, int gpus, bool saves) {
  return {{"replicas", replicas},
          {"checkpoint", {{"onStop", saves}}},
          {"template",
           {{"spec",
             {{"containers",
               {{{"name", "main"},
                 {"image", "trainer"},
                 {"resources", {{"limits", {{kGpuResource, std::to_string(gpus)}}}}}}}}}}}}};
}

Replica::Replica(const std::string& identity, uint64_t seed, FakeCluster& cluster,
                 const Network& network, const Clock& right_clock, size_t at_once,
                 bool serves_admission, bool rights_by_namespace)
    : clock(right_clock),
      connection(seed, cluster, network),
      requests(MakeSequentialRequests(connection)),
      controller({.identity = identity,
                  .on_cycle = ReplaySome,
                  .at_once = at_once,
                  .serves_admission = serves_admission,
                  .rights_by_namespace = rights_by_namespace},
                 connection, *requests, clock) {
  for (const Source source : kAllSources)
    known_.try_emplace(source, [this, source](WatchChange change) {
      changes_.emplace_back(source, std::move(change));
    });
}

void Replica::Show(Source source, size_t most) {
  KnownObjects& known = known_.at(source);
  try {
    if (known.version().empty()) {
      known.TakeList(connection.List(KindOf(source), "", {}));
    } else {
      connection.Watch(KindOf(source), "", {}, std::string(known.version()),
                       [&](std::string_view type, Json&& object) {
                         if (most-- == 0) throw Cut();
                         known.TakeEvent(type, std::move(object));
                       });
    }
  } catch (const Cut&) {
  } catch (const ApiError& error) {
    if (error.is_expired()) known.Expire();
  }
  for (const auto& [from, change] : std::exchange(changes_, {})) controller.Take(from, change);
}

void Replica::Work(size_t most_changes) {
  for (const Source source : kAllSources) Show(source, most_changes);
  controller.Turn();
}

std::unique_ptr<Replica> World::StartController() {
  const uint64_t number = static_cast<uint64_t>(++replicas);
  return std::exchange(leader, std::make_unique<Replica>(
                                   fmt::format("replica-{}", number), seed * 1000 + number, cluster,
                                   network, clock, at_once, serves_admission, rights_by_namespace));
}

void World::Play() {
  for (const std::string& each : cluster.Play())
    if (std::find(wrong.begin(), wrong.end(), each) == wrong.end()) wrong.push_back(each);
}

void World::Run(TimeMs duration, TimeMs step) {
  for (TimeMs ran = 0; ran < duration; ran += step) {
    clock.seconds += static_cast<double>(step) / 1000;
    Play();
    leader->Work();
  }
}

Observed World::SeenByClients() const {
  const auto list = [&](const Kind& kind) {
    Json items = Json::array();
    for (const Json* object : cluster.Objects(kind)) items.push_back(*object);
    return items;
  };
  const Json nodes = list(Nodes()), pools = list(NodePools()), queues = list(Queues()),
             pods = list(Pods());
  std::vector<GangJob> jobs;
  for (const Json& job : list(GangJobs()))
    jobs.push_back(GangJobFrom(std::make_shared<const Json>(job)));
  return Observe(
      {.nodes = nodes, .pools = pools, .queues = queues, .pods = pods, .jobs = std::move(jobs)}, {},
      clock.UnixMs());
}

std::string World::PhaseOf(const std::string& name) const {
  const Json* job = cluster.FindJob("ads", name);
  return job == nullptr ? "gone" : TextAt(*job, {"status", "phase"});
}

int64_t World::AttemptsOf(const std::string& name) const {
  return NumberAt(*cluster.FindJob("ads", name), {"status", "attempts"});
}

std::string World::StatusOf(const std::string& name, const char* key) const {
  return TextAt(*cluster.FindJob("ads", name), {"status", key});
}

std::vector<std::string> World::Told() const {
  std::vector<std::string> messages;
  for (const Json* event : cluster.Objects(Events()))
    messages.push_back(TextAt(*event, {"message"}));
  return messages;
}

}  // namespace renzan::cluster::kubernetes
