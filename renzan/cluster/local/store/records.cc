#include "renzan/cluster/local/store/records.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "renzan/cluster/spec/job_states.h"

namespace renzan::cluster::local {
namespace {

using Json = nlohmann::ordered_json;

static_assert(spec::kJobStates.size() == static_cast<size_t>(RecordState::kTimeout) + 1);
constexpr std::array kNodeStates = {"ready", "booting", "draining", "gone", "cordoned"};

template <typename State, size_t N>
std::optional<State> Named(const std::array<const char*, N>& names, std::string_view name) {
  for (size_t i = 0; i < N; ++i)
    if (name == names[i]) return static_cast<State>(i);
  return std::nullopt;
}

}  // namespace

const char* NameOf(RecordState state) { return spec::kJobStates.at(static_cast<size_t>(state)); }
std::optional<RecordState> RecordStateNamed(std::string_view name) {
  return Named<RecordState>(spec::kJobStates, name);
}
const char* NameOf(NodeState state) { return kNodeStates.at(static_cast<size_t>(state)); }
std::optional<NodeState> NodeStateNamed(std::string_view name) {
  return Named<NodeState>(kNodeStates, name);
}

std::string PrintPlacement(const NamedPlacement& placement) {
  Json out = Json::array();
  for (const NodeShare& share : placement)
    out.push_back({{"node", share.node}, {"workers", share.workers}, {"devices", share.devices}});
  return out.dump();
}

std::optional<NamedPlacement> ParsePlacement(std::string_view text) {
  try {
    NamedPlacement placement;
    for (const Json& share : Json::parse(text))
      placement.push_back({.node = share.at("node"),
                           .workers = share.at("workers"),
                           .devices = share.at("devices")});
    return placement;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

JobTraits TraitsOf(const JobRecord& job) {
  const int64_t gpus = job.gpus * job.max_workers;
  return {job.queue, job.user, job.name, gpus > 0 ? gpus : job.max_workers};
}

int64_t WorkerMs(const AttemptRecord& attempt) {
  if (!attempt.ended) return 0;
  int workers = 0;
  for (const NodeShare& share : attempt.placement) workers += share.workers;
  return std::max<TimeMs>(0, *attempt.ended - attempt.started) * workers;
}

}  // namespace renzan::cluster::local
