#pragma once

// What rows cost that no sample looks up, where they take every step, too (optimizer.sparse.rows:
// all; embedding/idle_rows.h says when they take them).

namespace renzan {

// How they take their steps, and what the arithmetic of one costs a value, in the operations that
// MachineRates::matrix_flops counts.
struct IdleRowSteps {
  bool move = false;          // otherwise such rows cost nothing
  bool decays = false;        // weight decay moves every row; otherwise only momentum does
  double step_flops = 0;      // of a step that changes the value
  double fading_flops = 0;    // of a step that changes only its states
  double steps_to_still = 0;  // after which momentum is too small to change the value
  double interval = 1;        // all rows catch up after so many steps
};

// The rows of a shard that have moved, and the distinct ones of them that a step looks up.
struct MovingRows {
  double rows = 0, looked_up = 0;
  double columns = 0;
  double bytes = 0;  // of a row and its states
};

// For one step, on average.
struct IdleRowsCost {
  double flops = 0;
  double stream_bytes = 0;  // when all rows catch up, in order
  double row_bytes = 0;     // when rows catch up because a batch looks them up
};

// Every row is taken to be looked up equally often.
IdleRowsCost CostOfIdleRows(const IdleRowSteps& steps, const MovingRows& moving);

}  // namespace renzan
