#include "renzan/embedding/idle_row_steps.h"

#include <cmath>

#include "renzan/base/error.h"
#include "renzan/embedding/idle_rows.h"

namespace renzan {
namespace {

// Rates of matrix products count the multiplication and the addition of a fused operation. One of
// either, which cannot be fused here because of the bits, lasts as long.
constexpr double kOperation = 2;
// A division or a square root of a vector lasts as long as some ten of these on today's cores
// (throughput; Agner Fog, Instruction tables).
constexpr double kDivision = 10 * kOperation;

// How far momentum has to fade until no later step can change a value: idle_steps-inl.h compares
// lr·m / ε, or lr·b, with half a unit in the last place of the value.
constexpr double kFadedAdam = 0x1p-32, kFadedMomentum = 0x1p-20;

double StepsToFade(double factor, double to) {
  return factor <= 0 ? 1 : std::log(to) / std::log(factor);
}

// Of optimizer_steps-inl.h, with the gradient of 0 or l2·w.
double FlopsOfIdleStep(SparseOptimizerType type) {
  using enum SparseOptimizerType;
  switch (type) {
    case kSgd:
      return 2 * kOperation;
    case kAdagrad:
      return 5 * kOperation + 2 * kDivision;
    case kAdam:
      return 12 * kOperation + 2 * kDivision;
    case kMomentum:
      return 4 * kOperation;
    case kRowWiseAdagrad:
    case kFtrl:
      break;
  }
  CHECK_MSG(false, "its idle rows do not move");
  return 0;
}

}  // namespace

IdleRowSteps IdleRowStepsOf(const SparseOptimizerOptions& options) {
  if (!IdleRowsMove(options)) return {};
  const bool decays = options.weight_decay != 0;
  // Weight decay multiplies, and L2 adds to the gradient.
  const double decay = !decays                                             ? 0
                       : options.weight_decay_mode == WeightDecayMode::kL2 ? 2 * kOperation
                                                                           : kOperation;
  const bool adam = options.type == SparseOptimizerType::kAdam;
  return {.move = true,
          .decays = decays,
          .step_flops = FlopsOfIdleStep(options.type) + decay,
          // Each state fades by a multiplication and an addition of 0.
          .fading_flops = 2 * kOperation * InfoOf(options.type).state_per_value(),
          .steps_to_still = adam ? StepsToFade(options.beta1, kFadedAdam)
                                 : StepsToFade(options.momentum, kFadedMomentum),
          .interval = static_cast<double>(IdleRows::kMostSteps)};
}

}  // namespace renzan
