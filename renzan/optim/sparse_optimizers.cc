#include "renzan/optim/sparse_optimizers.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "renzan/base/error.h"

namespace renzan {
namespace {

using Sparse = SparseOptimizerType;

constexpr SparseState kSparseAdagrad[] = {{"adagrad"}};
constexpr SparseState kSparseRowWiseAdagrad[] = {{"rowwise_adagrad", /*per_row=*/true}};
constexpr SparseState kSparseAdam[] = {{"adam_m"}, {"adam_v"}};
constexpr SparseState kSparseMomentum[] = {{"momentum"}};
constexpr SparseState kSparseFtrl[] = {{"ftrl_z"}, {"ftrl_n"}};

constexpr SparseOptimizerInfo kSparseOptimizers[] = {
    {Sparse::kSgd, "sgd", {}},
    {Sparse::kAdagrad, "adagrad", kSparseAdagrad},
    {.type = Sparse::kRowWiseAdagrad,
     .name = "rowwise_adagrad",
     .states = kSparseRowWiseAdagrad,
     .moves_all_rows = false},
    {.type = Sparse::kAdam,
     .name = "adam",
     .states = kSparseAdam,
     .has_accumulator = false,
     .counts_steps = true,
     .runs_on_gpu = false},
    {.type = Sparse::kMomentum,
     .name = "momentum",
     .states = kSparseMomentum,
     .has_accumulator = false,
     .runs_on_gpu = false},
    {.type = Sparse::kFtrl,
     .name = "ftrl",
     .states = kSparseFtrl,
     .has_accumulator = false,
     .runs_on_gpu = false,
     .moves_all_rows = false},
};

// torch.optim.SparseAdam adds ε to √v before it corrects v's bias, torch.optim.Adam, which moves
// all rows, afterwards.
AdamFactors SparseAdamFactors(const SparseOptimizerOptions& options, double learning_rate,
                              int64_t step) {
  if (options.all_rows) return {learning_rate, options.epsilon, options.beta1, options.beta2, step};
  const double correction = 1 - std::pow(options.beta2, static_cast<double>(step + 1));
  return {learning_rate, options.epsilon / std::sqrt(correction), options.beta1, options.beta2,
          step};
}

int64_t WidthOf(const SparseState& state, int64_t dim) { return state.per_row ? 1 : dim; }

}  // namespace

int SparseOptimizerInfo::state_per_value() const {
  return static_cast<int>(std::ssize(states)) - state_per_row();
}

int SparseOptimizerInfo::state_per_row() const {
  return static_cast<int>(std::ranges::count(states, true, &SparseState::per_row));
}

std::span<const SparseOptimizerInfo> SparseOptimizers() { return kSparseOptimizers; }

const SparseOptimizerInfo& InfoOf(SparseOptimizerType type) {
  const SparseOptimizerInfo& info = kSparseOptimizers[static_cast<size_t>(type)];
  CHECK(info.type == type);
  return info;
}

std::vector<std::string> SparseOptimizerNames() {
  std::vector<std::string> names;
  for (const SparseOptimizerInfo& info : kSparseOptimizers) names.push_back(info.name);
  return names;
}

StatePart PartOfState(SparseOptimizerType type, size_t state, int64_t dim) {
  const std::span<const SparseState> states = InfoOf(type).states;
  StatePart part{.first = 0, .width = WidthOf(states[state], dim)};
  for (const SparseState& earlier : states.first(state)) part.first += WidthOf(earlier, dim);
  return part;
}

float InitialStateOf(const SparseOptimizerOptions& options) {
  return InfoOf(options.type).has_accumulator ? static_cast<float>(options.initial_accumulator)
                                              : 0.0f;
}

bool IdleRowsMove(const SparseOptimizerOptions& options) {
  const bool has_momentum = options.type == Sparse::kAdam || options.type == Sparse::kMomentum;
  return options.all_rows && (has_momentum || options.weight_decay != 0);
}

SparseFactors FactorsOf(const SparseOptimizerOptions& options, double learning_rate, int64_t step) {
  return {.type = options.type,
          .lr = static_cast<float>(learning_rate),
          .epsilon = static_cast<float>(options.epsilon),
          .adam = options.type == Sparse::kAdam ? SparseAdamFactors(options, learning_rate, step)
                                                : AdamFactors(),
          .momentum = static_cast<float>(options.momentum),
          .beta = static_cast<float>(options.beta),
          .l1 = static_cast<float>(options.l1),
          .l2 = static_cast<float>(options.l2)};
}

}  // namespace renzan
