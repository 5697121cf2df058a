#pragma once

// Loads another run's model into a new run: the dense parameters that both have as they are, and
// the rows of each table where their values are in this run's data. Blocks and plans of tables may
// differ.

#include <set>
#include <span>
#include <string>
#include <vector>

#include "renzan/checkpoint/reader.h"
#include "renzan/data/row_origins.h"
#include "renzan/state/model_state.h"

namespace renzan {

struct InitialModel {
  // Of each table of the run: the rows that it takes.
  std::vector<RowOrigins> tables;
  std::set<std::string> other_parameters;  // of the dense part, that are not taken
  // Whether optimizer states are taken, because the optimizers are the same.
  bool dense_states = false, row_states = false;
};

// Reads no values. Throws kData if a table that is taken has other rows in the checkpoint than that
// says.
void CheckInitialShapes(const CheckpointReader& reader, std::span<const TableSpec> tables,
                        const InitialModel& initial);

// Each worker reads and verifies the part that it owns. What is not taken stays as it was
// drawn. Throws kNoInput, kIo or kData, also for values that are not finite.
void LoadInitialModel(CheckpointReader& reader, const InitialModel& initial, ModelState* model);

}  // namespace renzan
