#include "renzan/model/error_sums.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr double kMaxError = 0x1.0p31;
constexpr double kMaxPrediction = 0x1.0p40;
constexpr double kFractionOne = 0x1.0p52;

static_assert(sizeof(ErrorSums) == ErrorSums::kNumIntegers * sizeof(int64_t));

}  // namespace

void ExactSum::Add(double value, int64_t times) {
  const double floor = std::floor(value);
  const auto rest = static_cast<int64_t>((value - floor) * kFractionOne + 0.5);
  whole += static_cast<__int128>(static_cast<int64_t>(floor)) * times;
  fraction += static_cast<__int128>(rest) * times;
}

double ExactSum::Value() const {
  return static_cast<double>(whole) + static_cast<double>(fraction) / kFractionOne;
}

void ErrorSums::Add(float predicted, float labelled, int64_t times) {
  const double error = std::clamp(double{predicted} - double{labelled}, -kMaxError, kMaxError);
  squared_error.Add(error * error, times);
  absolute_error.Add(std::abs(error), times);
  prediction.Add(std::clamp(double{predicted}, -kMaxPrediction, kMaxPrediction), times);
  label.Add(labelled, times);
}

void ErrorSums::Merge(const ErrorSums& other) {
  squared_error.Merge(other.squared_error);
  absolute_error.Merge(other.absolute_error);
  prediction.Merge(other.prediction);
  label.Merge(other.label);
}

void ErrorSums::ToIntegers(std::span<int64_t> integers) const {
  CHECK(integers.size() == kNumIntegers);
  std::memcpy(integers.data(), this, sizeof(*this));
}

ErrorSums ErrorSums::FromIntegers(std::span<const int64_t> integers) {
  CHECK(integers.size() == kNumIntegers);
  ErrorSums sums;
  std::memcpy(static_cast<void*>(&sums), integers.data(), sizeof(sums));
  return sums;
}

}  // namespace renzan
