#pragma once

// One worker's part of a model at one step, as files to be written while training continues. Dense
// parameters and residuals are copied; tables are read through copy-on-write views. The files of
// all workers make up a checkpoint, which does not depend on which worker wrote which file.
//
// The training thread creates, abandons and destroys it between steps. One other thread reads
// files(); those of a full snapshot may be read by several, each file by one. At most one snapshot
// of a model exists at a time.

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "renzan/checkpoint/block_key.h"
#include "renzan/checkpoint/writer.h"
#include "renzan/embedding/row_set.h"
#include "renzan/state/model_state.h"

namespace renzan {

struct SnapshotOptions {
  bool incremental = false;  // only the rows dirty since the last full snapshot
  bool quantize = false;     // the rows of an incremental one
  bool with_dense = false;   // include the dense part: one worker writes it for all
};

// The size of a snapshot of this worker's part, without file headers.
struct SnapshotBytes {
  uint64_t full = 0, incremental = 0;
};
SnapshotBytes EstimateBytes(ModelState& model, const SnapshotOptions& options);

class ModelSnapshot {
 public:
  struct File {
    std::string name;
    std::vector<TensorSource> tensors;
    uint64_t bytes() const;
  };

  // A full snapshot clears the sets of dirty rows.
  ModelSnapshot(ModelState& model, const SnapshotOptions& options);
  ~ModelSnapshot();
  ModelSnapshot(const ModelSnapshot&) = delete;
  ModelSnapshot& operator=(const ModelSnapshot&) = delete;

  // Read each value once. Quantized rows come before the file with their scales; other files may
  // be written in any order.
  const std::vector<File>& files() const { return files_; }

  // Call it when the snapshot was not written: marks the rows that were dirty before it dirty
  // again.
  void Abandon();

  // Releases the copy-on-write views: all files have been read.
  void Release();

  // The bytes of rows that training has changed, and that were copied before that and have not been
  // read yet. Thread-safe.
  int64_t copied_bytes() const { return copied_bytes_.load(std::memory_order_relaxed); }

 private:
  void AddDense();
  void AddErrorFeedback();
  // Of all rows of a block, or of some.
  void View(EmbeddingShard& shard, const RowSet* only, EmbeddingShard::Block* block);
  void AddWholeBlock(EmbeddingShard& shard, EmbeddingShard::Block& block);
  void AddDirtyRows(EmbeddingShard& shard, EmbeddingShard::Block& block, bool quantize);

  ModelState& model_;
  ShardedEmbeddings& embeddings_;
  std::atomic<int64_t> copied_bytes_{0};
  std::vector<File> files_;
  std::vector<RowSet> dirty_before_;  // of every block; only in a full snapshot
};

// The keys and shapes under which a block is saved.
BlockKey KeyOf(const EmbeddingShard& shard, const EmbeddingShard::Block& block);
// Of its optimizer state: [rows] or [rows, dim].
std::vector<int64_t> StateShape(const ShardedEmbeddings& embeddings, const EmbeddingShard& shard,
                                const EmbeddingShard::Block& block);

// Of what error feedback keeps for a table: the keys' tensor, and the residuals'.
struct ErrorFeedbackKeys {
  std::string keys, residuals;
};
ErrorFeedbackKeys KeysOfErrorFeedback(const TableSpec& table, int virtual_worker);

}  // namespace renzan
