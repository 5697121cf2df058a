#pragma once

// For tests: the Error that a function throws.

#include <gtest/gtest.h>

#include "renzan/base/error.h"

namespace renzan::s3 {

template <typename Function>
Error FailureOf(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::kSoftware, "");
}

}  // namespace renzan::s3
