#pragma once

// The words for states of nodes.

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

inline constexpr std::array kNodeStates = {"ready", "booting", "draining", "gone", "cordoned"};
static_assert(kNodeStates.size() == static_cast<size_t>(NodeState::kCordoned) + 1);

constexpr const char* NameOf(NodeState state) { return kNodeStates[static_cast<size_t>(state)]; }
constexpr std::optional<NodeState> NodeStateNamed(std::string_view name) {
  const auto at = std::find(kNodeStates.begin(), kNodeStates.end(), name);
  if (at == kNodeStates.end()) return std::nullopt;
  return static_cast<NodeState>(at - kNodeStates.begin());
}

}  // namespace renzan::cluster
