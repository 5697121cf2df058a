#include "renzan/cluster/core/labels.h"

#include <algorithm>

namespace renzan::cluster {

bool HasAll(const Labels& labels, const Labels& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    const auto at = labels.find(label.first);
    return at != labels.end() && at->second == label.second;
  });
}

bool Matches(const Node& node, const WorkerRequest& request) {
  return HasAll(node.labels, request.required) &&
         !std::binary_search(request.excluded_nodes.begin(), request.excluded_nodes.end(),
                             node.name);
}

int CountPreferred(const Node& node, const WorkerRequest& request) {
  return static_cast<int>(
      std::count_if(request.preferred.begin(), request.preferred.end(), [&](const auto& label) {
        const auto at = node.labels.find(label.first);
        return at != node.labels.end() && at->second == label.second;
      }));
}

std::string DomainOf(const Snapshot& snapshot, const Labels& labels, const std::string& level) {
  const auto narrowest = labels.find(level);
  if (narrowest == labels.end()) return "";
  std::string domain;
  for (const std::string& wider : snapshot.topology_levels) {
    if (wider == level) break;
    if (const auto at = labels.find(wider); at != labels.end()) domain += at->second + "/";
  }
  return domain + narrowest->second;
}

std::vector<int> DomainsAt(const Snapshot& snapshot, const std::string& level) {
  std::vector<int> domains;
  std::map<std::string, int> numbers;
  for (const Node& node : snapshot.nodes) {
    const std::string domain = DomainOf(snapshot, node.labels, level);
    if (level == kHostLevel)
      domains.push_back(static_cast<int>(domains.size()));
    else if (domain.empty())
      domains.push_back(-1);
    else
      domains.push_back(
          numbers.try_emplace(domain, static_cast<int>(numbers.size())).first->second);
  }
  return domains;
}

}  // namespace renzan::cluster
