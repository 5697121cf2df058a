// Activation functions in vectors against the same formulas one value at a time with the C library,
// measured in alternation: nanoseconds of one thread for each value, forward and backward.
//
//   activation_bench [--rows 2048] [--columns 256] [--precision fp32] [--repeats 9]

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "bench/options.h"
#include "renzan/base/clock.h"
#include "renzan/base/philox.h"
#include "renzan/nn/activation.h"

namespace renzan {
namespace {

struct Formula {
  double (*value)(double);
  double (*slope)(double);
};

double SigmoidByLibrary(double z) {
  const double e = std::exp(-std::abs(z));
  return (z < 0 ? e : 1) / (1 + e);
}
double ShareByLibrary(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

Formula FormulaOf(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return {[](double z) { return std::max(z, 0.0); }, [](double z) { return z > 0 ? 1.0 : 0; }};
    case Activation::kSilu:
      return {[](double z) { return z * SigmoidByLibrary(z); },
              [](double z) {
                const double s = SigmoidByLibrary(z);
                return s * (1 + z * (1 - s));
              }};
    case Activation::kGelu:
      return {[](double z) { return z * ShareByLibrary(z); },
              [](double z) {
                return ShareByLibrary(z) +
                       z * std::numbers::inv_sqrtpi / std::numbers::sqrt2 * std::exp(-z * z / 2);
              }};
    case Activation::kTanh:
      return {[](double z) { return std::tanh(z); },
              [](double z) {
                const double t = std::tanh(z);
                return 1 - t * t;
              }};
    case Activation::kSigmoid:
      return {SigmoidByLibrary, [](double z) {
                const double s = SigmoidByLibrary(z);
                return s * (1 - s);
              }};
  }
  return {};
}

// y = result(z, y), row by row.
template <typename Result>
void OneByOne(const BlockedMatrix& z, BlockedMatrix* y, const Result& result) {
  std::vector<float> from(static_cast<size_t>(z.columns())), to(from.size());
  for (int64_t row = 0; row < z.rows(); ++row) {
    z.GetRow(row, 0, from.data(), z.columns());
    y->GetRow(row, 0, to.data(), z.columns());
    for (size_t c = 0; c < from.size(); ++c) to[c] = result(from[c], to[c], c);
    y->SetRow(row, 0, to.data(), z.columns());
  }
}

// The least time of each, in alternation.
std::vector<double> SecondsOf(int repeats, const std::vector<std::function<void()>>& bodies) {
  std::vector<double> best(bodies.size(), 1e9);
  for (int repeat = 0; repeat < repeats; ++repeat)
    for (size_t i = 0; i < bodies.size(); ++i) {
      const double start = SystemClock().MonotonicSeconds();
      bodies[i]();
      best[i] = std::min(best[i], SystemClock().MonotonicSeconds() - start);
    }
  return best;
}

int Main(int argc, char** argv) {
  int64_t rows = 2048, columns = 256;
  int repeats = 9;
  std::string precision = "fp32";
  bench::Options command_line("Activation functions in vectors and one value at a time");
  command_line.AddPositive("--rows", &rows);
  command_line.AddPositive("--columns", &columns);
  command_line.AddPositive("--repeats", &repeats);
  command_line.AddOneOf("--precision", &precision, {"fp32", "bf16"});
  command_line.ParseOrExit(argc, argv);

  const Precision of = precision == "fp32" ? Precision::kFloat32 : Precision::kBFloat16;
  BlockedMatrix z(rows, columns, of), y(rows, columns, of), normalized(rows, columns),
      d_normalized(rows, columns), d_slopes(rows, columns);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < columns; ++c) {
      const float value = 6 * Philox::Uniform(Philox::Draw(1, static_cast<uint64_t>(row),
                                                           static_cast<uint64_t>(c))[0]) -
                          3;
      z.Set(row, c, value);
      normalized.Set(row, c, value);
    }
  const std::vector<float> slopes(static_cast<size_t>(columns), 0.25f);
  fmt::print("{:<8} {:>10} {:>10} {:>7}   {:>10} {:>10} {:>7}\n", "", "forward ns", "one by one",
             "ratio", "backward", "one by one", "ratio");
  const auto report = [&](const std::string& name,
                          const std::vector<std::function<void()>>& bodies) {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t c = 0; c < columns; ++c) y.Set(row, c, 1);  // repeats multiply it
    std::vector<double> ns = SecondsOf(repeats, bodies);
    for (double& each : ns) each *= 1e9 / static_cast<double>(rows * columns);
    fmt::print("{:<8} {:>10.2f} {:>10.2f} {:>7.1f}   {:>10.2f} {:>10.2f} {:>7.1f}\n", name, ns[0],
               ns[1], ns[1] / ns[0], ns[2], ns[3], ns[3] / ns[2]);
  };
  for (const std::string& name : ActivationNames()) {
    const Activation activation = ActivationNamed(name);
    const Formula formula = FormulaOf(activation);
    report(name, {[&] { Activate(activation, z, &y); },
                  [&] {
                    OneByOne(z, &y, [&](float from, float, size_t) {
                      return static_cast<float>(formula.value(double{from}));
                    });
                  },
                  [&] { ActivateBackward(activation, z, &y); },
                  [&] {
                    OneByOne(z, &y, [&](float from, float d, size_t) {
                      return d * static_cast<float>(formula.slope(double{from}));
                    });
                  }});
  }
  report("prelu", {[&] { Prelu(z, slopes.data(), &y); },
                   [&] {
                     OneByOne(z, &y, [&](float from, float, size_t c) {
                       return from > 0 ? from : slopes[c] * from;
                     });
                   },
                   [&] { PreluBackward(z, slopes.data(), &y, &d_slopes); },
                   [&] {
                     OneByOne(z, &d_slopes, [&](float from, float d, size_t) {
                       return from > 0 ? 0.0f : from * d;
                     });
                     OneByOne(z, &y, [&](float from, float d, size_t c) {
                       return from > 0 ? d : slopes[c] * d;
                     });
                   }});
  const auto share = [](float p) { return static_cast<float>(SigmoidByLibrary(double{p})); };
  report("dice", {[&] { Dice(z, normalized, slopes.data(), &y); },
                  [&] {
                    OneByOne(z, &y, [&](float from, float, size_t c) {
                      const float p = share(from);
                      return from * (p + slopes[c] * (1 - p));
                    });
                  },
                  [&] { DiceBackward(z, normalized, slopes.data(), &y, &d_normalized, &d_slopes); },
                  [&] {
                    OneByOne(z, &y, [&](float from, float d, size_t c) {
                      const float p = share(from);
                      return d * (p + slopes[c] * (1 - p)) +
                             d * from * (1 - slopes[c]) * p * (1 - p);
                    });
                  }});
  return 0;
}

}  // namespace
}  // namespace renzan

int main(int argc, char** argv) { return renzan::Main(argc, argv); }
