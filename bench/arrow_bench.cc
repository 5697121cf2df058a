// Measures how fast tables in memory become datasets (renzan_dataset_write): rows per second and
// core for Criteo's 40 columns, whose 26 categories are 64-bit integers or texts, hashed. The table
// lies in memory before, as that of a caller does.
//
//   arrow_bench [--rows 2000000] [--directory DIR] [--repeats 3] [--only texts]

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "bench/options.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/philox.h"
#include "renzan/data/arrow/arrow_source.h"
#include "renzan/data/arrow/arrow_testing.h"
#include "renzan/data/import.h"

namespace renzan {
namespace {

using testing::TestArray;
using testing::TestStream;

constexpr int64_t kBatchRows = 65'536;
constexpr size_t kDense = 13, kCategorical = 26;

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Like Criteo's: counts with a long tail, and values of very different frequency.
uint64_t Draw(size_t column, int64_t row) {
  const Philox::Block words = Philox::Draw(column, static_cast<uint64_t>(row));
  return words[0] >> (words[1] % 28);
}

template <typename T, typename Make>
TestArray NumbersOf(const std::string& format, const std::string& name, int64_t rows, Make make) {
  std::string data(static_cast<size_t>(rows) * sizeof(T), '\0');
  for (int64_t r = 0; r < rows; ++r) {
    const T value = make(r);
    std::copy_n(reinterpret_cast<const char*>(&value), sizeof value,
                data.data() + static_cast<size_t>(r) * sizeof value);
  }
  return {.format = format, .name = name, .length = rows, .buffers = {"", data}};
}

TestArray HexTexts(const std::string& name, int64_t rows, size_t column, int64_t first) {
  std::string bytes, offsets = testing::BytesOf(int32_t{0});
  for (int64_t r = 0; r < rows; ++r) {
    bytes += fmt::format("{:08x}", Draw(column, first + r) * 2654435761 % (uint64_t{1} << 32));
    offsets += testing::BytesOf(static_cast<int32_t>(bytes.size()));
  }
  return {.format = "u", .name = name, .length = rows, .buffers = {"", offsets, bytes}};
}

std::vector<std::vector<TestArray>> Table(int64_t rows, const std::string& kind) {
  std::vector<std::vector<TestArray>> batches;
  for (int64_t first = 0; first < rows; first += kBatchRows) {
    const int64_t count = std::min(kBatchRows, rows - first);
    std::vector<TestArray>& columns = batches.emplace_back();
    columns.push_back(NumbersOf<int32_t>("i", "label", count, [&](int64_t r) {
      return static_cast<int32_t>(Draw(0, first + r) % 4 == 0);
    }));
    for (size_t d = 1; d <= kDense; ++d)
      columns.push_back(kind == "floats"
                            ? NumbersOf<float>("f", fmt::format("I{}", d), count,
                                               [&](int64_t r) {
                                                 return static_cast<float>(Draw(d, first + r)) /
                                                        1000;
                                               })
                            : NumbersOf<int32_t>("i", fmt::format("I{}", d), count, [&](int64_t r) {
                                return static_cast<int32_t>(Draw(d, first + r) >> 12);
                              }));
    for (size_t c = 1; c <= kCategorical; ++c)
      columns.push_back(kind == "texts"
                            ? HexTexts(fmt::format("C{}", c), count, kDense + c, first)
                            : NumbersOf<int64_t>("l", fmt::format("C{}", c), count, [&](int64_t r) {
                                return static_cast<int64_t>(Draw(kDense + c, first + r));
                              }));
  }
  return batches;
}

void Measure(int64_t rows, int64_t repeats, const std::string& only, const std::string& directory) {
  constexpr char kSchema[] =
      "columns:\n  label: {role: label}\n  \"I*\": {role: dense, transform: log}\n"
      "  \"C*\": {role: categorical}\n";
  for (const std::string kind : {"integers", "texts", "floats"}) {
    if (!only.empty() && kind != only) continue;
    std::vector<double> rates;
    for (int64_t i = 0; i < repeats; ++i) {
      TestStream stream(Table(rows, kind));
      ImportOptions options;
      options.format = "csv";
      options.output = directory + "/dataset";
      options.vocabulary = {"hash:100000"};
      const double start = CpuSeconds();
      const auto source = MakeArrowSource(stream.get(), kSchema, "schema", Labels::kRequired);
      ImportRows(options, *source);
      rates.push_back(static_cast<double>(rows) / (CpuSeconds() - start));
      std::filesystem::remove_all(options.output);
    }
    std::sort(rates.begin(), rates.end());
    fmt::print("{:<9} {} rows: {:.0f} rows/s per core (median of {}; {:.0f} to {:.0f})\n", kind,
               rows, rates[rates.size() / 2], repeats, rates.front(), rates.back());
  }
}

int Main(int argc, char** argv) {
  int64_t rows = 2'000'000, repeats = 3;
  std::string directory, only;
  bench::Options command_line("Measure how fast tables in memory become datasets");
  command_line.AddPositive("--rows", &rows, "Rows of the table");
  command_line.AddPositive("--repeats", &repeats, "How often each is measured");
  command_line.Add("--directory", &directory,
                   "Where to put datasets: a fast disk [a temporary one]");
  command_line.Add("--only", &only, "integers, texts or floats [all]");
  command_line.ParseOrExit(argc, argv);
  try {
    const TemporaryDirectory temporary;
    Measure(rows, repeats, only, directory.empty() ? temporary.path() : directory);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_status();
  }
  return 0;
}

}  // namespace
}  // namespace renzan

int main(int argc, char** argv) { return renzan::Main(argc, argv); }
