#pragma once

#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/model/model.h"
#include "renzan/run/splits.h"
#include "renzan/run_spec/item_inputs.h"
#include "renzan/run_spec/run_spec.h"

namespace renzan {

// Counts the ids whose popularity blocks of the model want, in one pass over the split's rows.
// Exact, so every worker gets the same, and so does a resumed run.
std::vector<IdCounts> CountIds(const RunSpec& spec, const Model& model, const Split& split,
                               ThreadPool& pool);

}  // namespace renzan
