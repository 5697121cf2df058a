#pragma once

// This worker's shards at one step, as files to be written while training continues: rows and
// states are read through copy-on-write views, residuals of error feedback are copied. The files of
// all workers hold each block once, and do not depend on which worker wrote which file.
//
// The training thread creates, abandons and destroys it between steps. One other thread reads
// files(); those of a full snapshot may be read by several, each file by one. At most one snapshot
// of a shard exists at a time.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "renzan/checkpoint/writer.h"
#include "renzan/embedding/row_set.h"
#include "renzan/embedding/sharded_embeddings.h"

namespace renzan {

inline constexpr int64_t kSparseFromBytes = int64_t{64} << 20;

struct TableSnapshotOptions {
  bool incremental = false;  // only the rows dirty since the last full snapshot
  bool quantize = false;     // 8-bit rows, in an incremental snapshot
  bool sparse = true;        // full snapshots may be sparse, see IsSavedSparsely()
  int64_t sparse_from_bytes = kSparseFromBytes;
};

// Whether a full snapshot holds only those rows of a block that may differ from their initial
// values: if they take at most a quarter of all, and the table is not so small that the space
// matters less than being readable for whoever cannot compute initial values.
inline bool IsSavedSparsely(int64_t trained_bytes, int64_t block_bytes, int64_t table_bytes,
                            int64_t sparse_from_bytes = kSparseFromBytes) {
  return trained_bytes <= block_bytes / 4 && table_bytes >= sparse_from_bytes;
}

// The size of a snapshot of this worker's part, without file headers.
struct SnapshotBytes {
  uint64_t full = 0, incremental = 0;
};
SnapshotBytes EstimateTableBytes(ShardedEmbeddings& embeddings,
                                 const TableSnapshotOptions& options);

class TableSnapshot {
 public:
  // A full snapshot clears the sets of dirty rows. `embeddings` must outlive it.
  TableSnapshot(ShardedEmbeddings& embeddings, const TableSnapshotOptions& options);
  ~TableSnapshot();
  TableSnapshot(const TableSnapshot&) = delete;
  TableSnapshot& operator=(const TableSnapshot&) = delete;

  // Read each value once. Quantized rows come before the file with their scales; other files may
  // be written in any order.
  const std::vector<TensorFile>& files() const { return files_; }

  // Call it when the snapshot was not written: marks the rows that were dirty before it dirty
  // again.
  void Abandon();

  // Releases the copy-on-write views. Call it when all files have been read.
  void Release();

  // The bytes of rows that were copied because training was about to change them, and that have not
  // been read yet. Thread-safe.
  int64_t copied_bytes() const { return copied_bytes_.load(std::memory_order_relaxed); }

 private:
  void Take(const TableSnapshotOptions& options);
  void AddErrorFeedback();
  // Makes views of all rows of a block, or of some.
  void View(EmbeddingShard& shard, const RowSet* only, EmbeddingShard::Block* block);
  template <class Add>
  void AddStates(const EmbeddingShard& shard, const EmbeddingShard::Block& block, int64_t rows,
                 const Add& add);
  void AddWholeBlock(EmbeddingShard& shard, EmbeddingShard::Block& block);
  class LazyRows;
  void AddRows(EmbeddingShard& shard, EmbeddingShard::Block& block,
               const std::shared_ptr<LazyRows>& rows, bool quantize);
  void AddSparseBlock(EmbeddingShard& shard, EmbeddingShard::Block& block);

  ShardedEmbeddings& embeddings_;
  std::atomic<int64_t> copied_bytes_{0};
  std::vector<TensorFile> files_;
  std::vector<EmbeddingShard::Block*> viewed_;
  std::vector<RowSet> dirty_before_;  // of every block; only in a full snapshot
};

}  // namespace renzan
