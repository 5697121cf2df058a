#pragma once

// One worker's part of a model as it is at one step, as files to be written while training goes on:
// dense parameters are copied, tables are read through copy-on-write views. The files of all
// workers together are a checkpoint; none of them shows who wrote it.
//
// Made, abandoned and destroyed by the training thread between steps; files() are read by one other
// thread. At most one snapshot of a model exists at a time.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/checkpoint/writer.h"
#include "renzan/embedding/row_set.h"
#include "renzan/train/hybrid_model.h"

namespace renzan {

struct SnapshotOptions {
  bool incremental = false;  // only the rows dirty since the last full snapshot
  bool quantize = false;     // of an incremental one's rows
  bool with_dense = false;   // the dense part, which every worker has, is one worker's to write
};

// What a snapshot of this worker's part would take, without the headers of files.
struct SnapshotBytes {
  uint64_t full = 0, incremental = 0;
};
SnapshotBytes EstimateBytes(HybridModel& model, const SnapshotOptions& options);

class ModelSnapshot {
 public:
  struct File {
    std::string name;
    std::vector<TensorSource> tensors;
  };

  // A full one begins a new count of dirty rows.
  ModelSnapshot(HybridModel& model, const SnapshotOptions& options);
  ~ModelSnapshot();
  ModelSnapshot(const ModelSnapshot&) = delete;
  ModelSnapshot& operator=(const ModelSnapshot&) = delete;

  // To be written in this order, each value once.
  const std::vector<File>& files() const { return files_; }

  // The snapshot was not written: rows dirty before it count as dirty again.
  void Abandon();

 private:
  void AddDense();
  void AddWholeTable(EmbeddingTable& table);
  void AddDirtyRows(EmbeddingTable& table, bool quantize);

  HybridModel& model_;
  std::vector<File> files_;
  std::vector<RowSet> dirty_before_;  // by table, of a full snapshot
};

// The keys and shapes under which a table is saved.
std::string TableKey(const TableSpec& spec);                   // "embedding.C1"
std::vector<int64_t> StateShape(const EmbeddingTable& table);  // [rows] or [rows, dim]

}  // namespace renzan
