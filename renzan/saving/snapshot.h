#pragma once

// One worker's part of a model at one step, as files to be written while training continues: its
// shards (embedding/table_snapshot.h) and, on one worker, a copy of the dense part. The threading
// rules are those of TableSnapshot.

#include <cstdint>
#include <vector>

#include "renzan/checkpoint/writer.h"
#include "renzan/embedding/table_snapshot.h"
#include "renzan/state/model_state.h"

namespace renzan {

struct SnapshotOptions {
  TableSnapshotOptions tables;
  bool with_dense = false;  // include the dense part: one worker writes it for all
};

// The size of a snapshot of this worker's part, without file headers.
SnapshotBytes EstimateBytes(ModelState& model, const SnapshotOptions& options);

class ModelSnapshot {
 public:
  ModelSnapshot(ModelState& model, const SnapshotOptions& options);

  // The dense part first, if it is there.
  const std::vector<TensorFile>& files() const { return files_; }
  TableSnapshot& tables() { return tables_; }
  const TableSnapshot& tables() const { return tables_; }

 private:
  TableSnapshot tables_;
  std::vector<TensorFile> files_;
};

}  // namespace renzan
