#pragma once

// What a key of the configuration decides. Each section states it for its keys (ConfigFields::Tag),
// and every rule about keys follows from it. A key's value must be equal:
//
//                 on all workers | to resume a run | to get a saved model's predictions
//   kModel        yes              yes               yes
//   kArithmetic   yes              yes               no
//   kClass        yes              no (see below)    no
//   kRun          yes              no                no effect
//   kPlacement    no               no                no effect

namespace renzan {

enum class Decides {
  kUnsaid,      // a bug: every key must say it
  kModel,       // what the model is, and its bits
  kArithmetic,  // the bits of each step, by how values are computed
  kClass,       // the same through the class of instruction set or GPU, which checkpoints record
                // and resuming compares instead
  kRun,         // how long the run is, what it reports and saves, and how it is spread
  kPlacement,   // where one worker finds and keeps things, and how fast it is
};

}  // namespace renzan
