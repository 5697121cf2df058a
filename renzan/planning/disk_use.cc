#include "renzan/planning/disk_use.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "renzan/base/bytes_text.h"
#include "renzan/base/counted.h"
#include "renzan/data/vocabulary.h"
#include "renzan/embedding/error_feedback.h"
#include "renzan/embedding/table_snapshot.h"
#include "renzan/model/metrics.h"
#include "renzan/model/model.h"
#include "renzan/tensor/float_codec.h"

namespace renzan {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);
// Smaller tables are no trouble.
constexpr int64_t kLargeTableBytes = int64_t{256} << 20;
// With more rows per lookup than this, the run trains few of a table's rows.
constexpr double kMostRowsPerLookup = 10;

// Of different rows, at most.
double LookupsOf(const TableSpec& table, int64_t samples) {
  return std::ceil(static_cast<double>(samples) * std::max(1.0, table.pooling_factor));
}

// All rows with their optimizer states.
int64_t TableBytes(const RunSpec& spec, const TableSpec& table) {
  const int64_t columns = table.block_columns();
  const int64_t row =
      static_cast<int64_t>(EncodedBytes(spec.numerics.rows, static_cast<size_t>(columns))) +
      StateFloatsPerRow(spec.sparse_optimizer.type, columns) * kFloatBytes;
  return table.num_embeddings * table.column_blocks * row;
}

}  // namespace

int64_t DiskUse::model() const { return std::accumulate(tables.begin(), tables.end(), dense); }

DiskUse DiskUseOf(const RunSpec& spec, int64_t samples) {
  DiskUse use;
  // The metrics since the last report and those of the watch for divergence, of each task.
  use.progress = 2 * std::ssize(spec.loss.tasks) *
                 static_cast<int64_t>(OutputMetrics::kMaxIntegers * sizeof(int64_t));
  const int64_t states = std::ssize(InfoOf(spec.dense_optimizer.type).states);
  use.dense = MakeModel(spec.model)->layout().size() * kFloatBytes * (1 + states);
  for (const TableSpec& table : spec.tables) {
    const int64_t all = TableBytes(spec, table);
    int64_t saved = all;
    // With decay, rows move that no sample looks up.
    const bool all_move = !table.frozen && IdleRowsMove(spec.sparse_optimizer) &&
                          spec.sparse_optimizer.weight_decay != 0;
    if (samples != kAllRows && !all_move) {
      const int64_t row_numbers = table.column_blocks * static_cast<int64_t>(sizeof(int32_t));
      const double trained =
          LookupsOf(table, samples) * static_cast<double>(all / table.num_embeddings + row_numbers);
      if (trained < static_cast<double>(all) &&
          IsSavedSparsely(static_cast<int64_t>(trained), all, all))
        saved = static_cast<int64_t>(trained);
    }
    use.tables.push_back(saved);
    const int64_t slots = ErrorFeedbackSlots(table, spec.numerics.error_feedback_rows);
    use.feedback += spec.numerics.virtual_workers * slots *
                    (table.embedding_dim * kFloatBytes + static_cast<int64_t>(sizeof(int64_t)));
  }
  return use;
}

int64_t SavedSamples(const TrainConfig& config, int64_t samples) {
  return config.training.initialize_from.empty() && config.checkpoint.sparse ? samples : kAllRows;
}

std::string Describe(const DiskUse& use) {
  return fmt::format("a full checkpoint takes {}, the model {}", BytesText(use.checkpoint()),
                     BytesText(use.model()));
}

std::string UntouchedRowsAdvice(const RunSpec& spec, const DatasetSchema& schema, int64_t samples) {
  // Each row of a vocabulary is that of a value that occurred.
  const auto counts_values = [&](size_t t) {
    return HasUnseenRow(schema.categorical[FirstFeatureOf(spec, t)].vocabulary);
  };
  std::vector<size_t> sparse;
  for (size_t t = 0; t < spec.tables.size(); ++t)
    if (!counts_values(t) && TableBytes(spec, spec.tables[t]) >= kLargeTableBytes &&
        static_cast<double>(spec.tables[t].num_embeddings) >
            kMostRowsPerLookup * LookupsOf(spec.tables[t], samples))
      sparse.push_back(t);
  if (sparse.empty()) return "";
  const size_t largest = *std::max_element(sparse.begin(), sparse.end(), [&](size_t a, size_t b) {
    return TableBytes(spec, spec.tables[a]) < TableBytes(spec, spec.tables[b]);
  });
  const TableSpec& table = spec.tables[largest];
  const double lookups = LookupsOf(table, samples);
  return fmt::format(
      "the table of '{}' takes {} of memory{}, but of its {} this run can look up at most "
      "{:.0f}: import the data with fewer ids, such as --vocabulary '{}=hash:{:.0f}'",
      table.name, BytesText(TableBytes(spec, table)),
      sparse.size() == 1 ? "" : fmt::format(" and is the largest of {} like it", sparse.size()),
      Counted(table.num_embeddings, "row"), lookups, table.name,
      kMostRowsPerLookup * std::max(1.0, lookups));
}

std::string DiskSpaceAdvice(const DiskUse& use, int64_t bytes, const std::string& dir,
                            int64_t free_bytes) {
  if (bytes <= free_bytes) return "";
  return fmt::format(
      "{}, but only {} are free in {}: free some space, or choose other directories (--run-dir, "
      "checkpoint.dir)",
      Describe(use), BytesText(free_bytes), dir);
}

}  // namespace renzan
