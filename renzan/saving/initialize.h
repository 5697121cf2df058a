#pragma once

// Loads another run's model into a new run: the dense parameters as they are, and the rows of each
// table where their values are in this run's data. Blocks and plans of the two may differ.

#include <span>
#include <vector>

#include "renzan/checkpoint/reader.h"
#include "renzan/data/row_origins.h"
#include "renzan/state/model_state.h"

namespace renzan {

struct InitialModel {
  std::vector<RowOrigins> tables;  // of each table of the run: the rows that it takes
  // Whether optimizer states are taken, because the optimizers are the same.
  bool dense_states = false, row_states = false;
};

// Reads no values. Throws kConfig, which names the first table or dense parameter that has another
// shape in the checkpoint, kData if the checkpoint is not as it says.
void CheckInitialShapes(const CheckpointReader& reader, const ParameterLayout& layout,
                        std::span<const TableSpec> tables, const InitialModel& initial);

// Each worker reads and verifies the part that it owns. Rows that are not taken stay as they were
// drawn. Throws kNoInput, kIo or kData, also for values that are not finite.
void LoadInitialModel(CheckpointReader& reader, const InitialModel& initial, ModelState* model);

}  // namespace renzan
