#include "renzan/plan/idle_rows_cost.h"

#include <algorithm>
#include <cmath>

namespace renzan {
namespace {

// Of a row's counter of steps: it is read, written, and set to 0 when all rows have caught up.
constexpr double kCounterBytes = 4 * 4;

}  // namespace

IdleRowsCost CostOfIdleRows(const IdleRowSteps& steps, const MovingRows& moving) {
  if (!steps.move || moving.rows <= 0) return {};
  const double looked_up = std::min(moving.looked_up, moving.rows);
  const double idle = moving.rows - looked_up, often = looked_up / moving.rows;
  // Idle rows whose last lookup is not so long ago that they stand still.
  const double changing =
      steps.decays ? idle : idle * (1 - std::pow(1 - often, steps.steps_to_still));
  const double each_way = 2 * moving.bytes;
  return {.flops = moving.columns *
                   (steps.step_flops * changing + steps.fading_flops * (idle - changing)),
          .stream_bytes = moving.rows / steps.interval * (each_way + kCounterBytes),
          // Rows that the step before looked up, too, have missed nothing.
          .row_bytes = looked_up * (1 - often) * each_way};
}

}  // namespace renzan
