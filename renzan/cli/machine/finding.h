#pragma once

// The result of one check of `renzan doctor`.

#include <string>

namespace renzan {

struct Finding {
  enum class State {
    kGood,
    kLimited,  // available, but slower or smaller than it could be
    kMissing,
  };
  std::string name;
  State state = State::kGood;
  std::string here;    // what this machine has
  std::string advice;  // what to do; empty if nothing
};

inline const char* StateName(Finding::State state) {
  switch (state) {
    case Finding::State::kGood:
      return "ok";
    case Finding::State::kLimited:
      return "limited";
    case Finding::State::kMissing:
      return "missing";
  }
  return "";
}

}  // namespace renzan
