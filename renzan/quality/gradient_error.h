#pragma once

// Whether the rounding error of comm.backward matters. It adds to the noise that gradients have
// anyway because a batch is a sample of the data: a batch of B samples has a gradient of variance v
// / B, where v is the variance between samples. If rounding loses e per sample, the variance is (v
// + e) / B, as if the batch were smaller by e / (v + e).

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/config/comm_config.h"
#include "renzan/embedding/wire_error.h"

namespace renzan {

// The errors by table, over all virtual workers. `mine`: by own virtual worker and table. Every
// rank makes the same calls, and gets the same values for any placement.
std::vector<WireError> MergeErrors(Communicator& comm, int virtual_workers,
                                   std::span<const std::vector<WireError>> mine);

// The table that loses the most, and its e / v.
struct WorstTable {
  size_t table = 0;
  double error_to_noise = 0;
};
// Nothing if no table has noise, as with one sample per virtual worker.
std::optional<WorstTable> WorstOf(std::span<const WireError> tables);

// Nothing if rounding adds little to the noise of table `name`.
std::optional<std::string> GradientErrorAdvice(const std::string& name, double error_to_noise,
                                               const CommConfig& comm);

}  // namespace renzan
