#pragma once

// The states of a job, as the API and the command line name them, in the order of its life.

#include <array>

namespace renzan::cluster::spec {

inline constexpr std::array kJobStates = {"pending",  "running",    "stopping",
                                          "resizing", "collecting", "done",
                                          "failed",   "cancelled",  "timeout"};

}  // namespace renzan::cluster::spec
