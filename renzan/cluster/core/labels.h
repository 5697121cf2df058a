#pragma once

// Where may a request stand: labels and the domains of a topology. Pure functions.

#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

inline constexpr const char* kHostLevel = "host";  // the narrowest level: every node is a domain

// `labels` has all of `wanted`.
bool HasAll(const Labels& labels, const Labels& wanted);

// The node has all the labels that the request requires. Says nothing of room, state or topology.
bool Matches(const Node& node, const WorkerRequest& request);

// How many of the labels that the request prefers the node has.
int CountPreferred(const Node& node, const WorkerRequest& request);

// The domain at a topology level that labels say, with all wider ones: "a/1" for rack 1 of zone a,
// which is not rack 1 of zone b. "" without a label of that level: in no domain. Not for "host".
std::string DomainOf(const Snapshot& snapshot, const Labels& labels, const std::string& level);

// The domain of every node at a topology level, numbered from 0 in the order of their first nodes;
// -1 for a node that is in none. Of level "host" every node is one.
std::vector<int> DomainsAt(const Snapshot& snapshot, const std::string& level);

}  // namespace renzan::cluster
