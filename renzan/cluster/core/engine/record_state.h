#pragma once

// The states of a job as users see them, in the order of its life.

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace renzan::cluster {

enum class RecordState {
  kPending,
  kRunning,
  kStopping,
  kResizing,
  kCollecting,  // its processes have ended; what they left behind is being copied
  kDone,        // this and all later states: the job has ended
  kFailed,
  kCancelled,
  kTimeout,
};

inline constexpr std::array kRecordStates = {"pending",  "running",    "stopping",
                                             "resizing", "collecting", "done",
                                             "failed",   "cancelled",  "timeout"};
static_assert(kRecordStates.size() == static_cast<size_t>(RecordState::kTimeout) + 1);

constexpr const char* NameOf(RecordState state) {
  return kRecordStates[static_cast<size_t>(state)];
}
constexpr std::optional<RecordState> RecordStateNamed(std::string_view name) {
  const auto at = std::find(kRecordStates.begin(), kRecordStates.end(), name);
  if (at == kRecordStates.end()) return std::nullopt;
  return static_cast<RecordState>(at - kRecordStates.begin());
}
constexpr bool HasEnded(RecordState state) { return state >= RecordState::kDone; }

}  // namespace renzan::cluster
