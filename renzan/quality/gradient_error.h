#pragma once

// Whether what comm.backward rounds away matters: it adds to the noise that gradients have anyway,
// because a batch is a sample of the data. A batch of B samples has a gradient of variance v / B,
// where v is the variance between samples, and rounding makes that (v + e) / B, if e is what it
// loses per sample: as much as if the batch had been smaller by e / (v + e).

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/config/comm_config.h"
#include "renzan/embedding/wire_error.h"

namespace renzan {

// By table, over all virtual workers. `mine`: by own virtual worker and table. Every rank makes the
// same calls, and gets the same values for any placement.
std::vector<WireError> MergeErrors(Communicator& comm, int virtual_workers,
                                   std::span<const std::vector<WireError>> mine);

// The table that loses most, and e / v of it.
struct WorstTable {
  size_t table = 0;
  double error_to_noise = 0;
};
// Nothing if no table has noise, as with one sample per virtual worker.
std::optional<WorstTable> WorstOf(std::span<const WireError> tables);

// Nothing if rounding hardly adds to the noise of table `name`.
std::optional<std::string> GradientErrorAdvice(const std::string& name, double error_to_noise,
                                               const CommConfig& comm);

}  // namespace renzan
