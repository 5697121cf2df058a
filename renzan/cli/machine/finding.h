#pragma once

// What `renzan doctor` says about one thing.

#include <string>

namespace renzan {

struct Finding {
  enum class State {
    kGood,
    kLimited,  // there, but something will be slower or smaller than it might be
    kMissing,
  };
  std::string name;
  State state = State::kGood;
  std::string here;    // what this machine has
  std::string advice;  // what to do; empty where nothing has to be done
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
