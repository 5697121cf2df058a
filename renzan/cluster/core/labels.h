#pragma once

// Which nodes a worker request may use: labels and topology domains. Pure functions.

#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

inline constexpr const char* kHostLevel = "host";  // the narrowest level: every node is a domain

// Whether `labels` contains all of `wanted`.
bool HasAll(const Labels& labels, const Labels& wanted);

// Whether the node has all labels that the worker request requires, and is not excluded. Ignores
// free resources, node state and topology.
bool Matches(const Node& node, const WorkerRequest& request);

// How many of the preferred labels the node has.
int CountPreferred(const Node& node, const WorkerRequest& request);

// The topology domain that `labels` name at a level, qualified by the wider levels: "a/1" is rack 1
// of zone a, distinct from rack 1 of zone b. "" without a label for that level. Not for "host".
std::string DomainOf(const Snapshot& snapshot, const Labels& labels, const std::string& level);

// The domain of every node at a topology level, numbered from 0 in order of first appearance; -1
// for a node in no domain. At level "host" every node is a domain of its own.
std::vector<int> DomainsAt(const Snapshot& snapshot, const std::string& level);

}  // namespace renzan::cluster
