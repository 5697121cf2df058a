#include "renzan/quality/gradient_error.h"

#include "renzan/base/error.h"
#include "renzan/comm/virtual_workers.h"

namespace renzan {

std::vector<WireError> MergeErrors(Communicator& comm, int virtual_workers,
                                   std::span<const std::vector<WireError>> mine) {
  CHECK(!mine.empty());
  const size_t tables = mine[0].size();
  std::vector<WireError> flat, all(static_cast<size_t>(virtual_workers) * tables);
  for (const std::vector<WireError>& of_virtual_worker : mine)
    flat.insert(flat.end(), of_virtual_worker.begin(), of_virtual_worker.end());
  std::vector<std::span<std::byte>> parts;
  for (int r = 0; r < comm.world_size(); ++r) {
    const IndexRange range = VirtualWorkerRange(virtual_workers, comm.world_size(), r);
    parts.push_back(std::as_writable_bytes(std::span(all).subspan(
        static_cast<size_t>(range.begin) * tables, static_cast<size_t>(range.size()) * tables)));
  }
  comm.AllGatherV(std::as_bytes(std::span(flat)), parts);
  std::vector<WireError> sums(tables);
  for (size_t i = 0; i < all.size(); ++i) sums[i % tables].Add(all[i]);
  return sums;
}

std::optional<WorstTable> WorstOf(std::span<const WireError> tables) {
  std::optional<WorstTable> worst;
  for (size_t t = 0; t < tables.size(); ++t) {
    if (!(tables[t].noise > 0)) continue;
    const double ratio = tables[t].lost / tables[t].noise;
    if (!worst || ratio > worst->error_to_noise) worst = {t, ratio};
  }
  return worst;
}

std::optional<std::string> GradientErrorAdvice(const std::string& name, double error_to_noise,
                                               const CommConfig& comm) {
  constexpr double kMatters = 0.1;
  // Also for NaN, which another check reports.
  if (!(error_to_noise > kMatters)) return std::nullopt;
  std::string what = "use a wider codec";
  if (comm.error_feedback_rows == 0) what += ", or set comm.error_feedback_rows";
  return fmt::format(
      "comm.backward: {}: the rounding error of the gradients of {} is {:.0f} % of their own "
      "noise, as if training.batch_size were {:.0f} % smaller: {} (needs a new run)",
      comm.backward, name, 100 * error_to_noise, 100 * error_to_noise / (1 + error_to_noise), what);
}

}  // namespace renzan
