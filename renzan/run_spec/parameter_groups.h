#pragma once

// Which parameters of the dense part are trained alike (optimizer.blocks).

#include <map>
#include <string>
#include <vector>

#include "renzan/config/optimizer_config.h"
#include "renzan/model/model.h"
#include "renzan/optim/dense_optimizer.h"

namespace renzan {

// Groups of all parameters. Throws kConfig for a block that the model does not have, or that has no
// parameters.
std::vector<ParameterGroup> GroupsOf(const Model& model,
                                     const std::map<std::string, BlockRateConfig>& blocks);

}  // namespace renzan
