#pragma once

// By what the evaluations of a run group rows: training.group_by.

#include <optional>
#include <span>

#include "renzan/comm/communicator.h"
#include "renzan/config/train_config.h"
#include "renzan/infer/evaluate.h"
#include "renzan/infer/row_groups.h"
#include "renzan/run/splits.h"

namespace renzan {

// None if rows are not grouped, or nothing is evaluated. Throws kConfig if they cannot be, also
// where workers have other texts of a key, and kData if its files are corrupt. Every rank calls it.
std::optional<RowGroups> GroupsOf(const TrainConfig& config, const OpenedSplits& splits,
                                  std::span<const EvaluatedOutput> outputs, Communicator& comm);

}  // namespace renzan
