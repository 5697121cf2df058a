#include "renzan/cluster/local/store/records.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace renzan::cluster::local {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

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
  return std::max<TimeMs>(0, *attempt.ended - attempt.started) * NumWorkers(attempt.placement);
}

}  // namespace renzan::cluster::local
