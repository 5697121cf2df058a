// Measures how fast `renzan data import` reads Criteo's format: rows and bytes of text per second
// and core, compared with only splitting the file into lines (the limit), and the peak memory for
// an input and for one four times as large. Every measurement runs in its own process.
//
//   import_bench [--rows 500000] [--directory DIR]

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "bench/options.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/data/import.h"
#include "renzan/data/synth/synth.h"

namespace renzan {
namespace {

struct Usage {
  double cpu_seconds = 0, wall_seconds = 0, peak_mib = 0;
};

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

Usage RunInChild(const std::function<void()>& body) {
  std::fflush(stdout);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child < 0) FailErrno(errno, "cannot fork");
  if (child == 0) {
    int status = 0;
    try {
      body();
    } catch (const Error& error) {
      fmt::print(stderr, "{}\n", error.what());
      status = error.exit_status();
    }
    std::_Exit(status);
  }
  int status = 0;
  rusage usage{};
  if (::wait4(child, &status, 0, &usage) != child || status != 0)
    Fail(ErrorCode::kSoftware, "the measured process failed");
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  return {Seconds(usage.ru_utime) + Seconds(usage.ru_stime), wall.count(),
          static_cast<double>(usage.ru_maxrss) / 1024};
}

void PrintRow(const std::string& what, int64_t rows, uint64_t text_bytes, const Usage& usage) {
  fmt::print(
      "{:<28} {:>9} rows {:>9.0f} rows/s {:>7.1f} MB/s per core {:>7.2f} s wall {:>8.1f} MiB\n",
      what, rows, static_cast<double>(rows) / usage.cpu_seconds,
      static_cast<double>(text_bytes) * 1e-6 / usage.cpu_seconds, usage.wall_seconds,
      usage.peak_mib);
}

Usage Import(const std::string& file, const std::string& directory, const std::string& vocabulary) {
  const std::string output = directory + "/dataset";
  const Usage usage = RunInChild([&] {
    ImportOptions options;
    options.inputs = {file};
    options.output = output;
    options.vocabulary = {vocabulary};
    ImportDataset(options);
  });
  std::filesystem::remove_all(output);
  return usage;
}

Usage SplitLines(const std::string& file) {
  return RunInChild([&] {
    LineReader lines({file});
    std::string_view line;
    while (lines.Next(&line)) {
    }
  });
}

void Measure(int64_t rows, const std::string& directory) {
  for (const char* suffix : {"", ".gz", ".zst"}) {
    double small_mib = 0;
    for (int64_t factor : {1, 4}) {
      const std::string file = fmt::format("{}/clicks{}.tsv{}", directory, factor, suffix);
      RunInChild([&] {
        SynthOptions options;
        options.rows = rows * factor;
        options.output = file;
        Synthesize(options);
      });
      const std::string plain = fmt::format("{}/clicks{}.tsv", directory, factor);
      const uint64_t text_bytes = std::filesystem::file_size(plain);
      const std::string kind = *suffix == '\0' ? "plain" : suffix;
      PrintRow(kind + ", lines only", rows * factor, text_bytes, SplitLines(file));
      const Usage hashed = Import(file, directory, "hash:100000");
      PrintRow(kind + ", hash:100000", rows * factor, text_bytes, hashed);
      PrintRow(kind + ", threshold:8", rows * factor, text_bytes,
               Import(file, directory, "threshold:8"));
      if (factor == 1)
        small_mib = hashed.peak_mib;
      else
        fmt::print("{}: four times the input takes {:.2f} times the memory with hashing\n\n", kind,
                   hashed.peak_mib / small_mib);
    }
  }
}

int Main(int argc, char** argv) {
  int64_t rows = 500'000;
  std::string directory;
  bench::Options command_line("Measure the import of Criteo's format");
  command_line.AddPositive("--rows", &rows, "Rows of the smaller input");
  command_line.Add("--directory", &directory, "Where to put files: a fast disk [a temporary one]");
  command_line.ParseOrExit(argc, argv);
  try {
    const TemporaryDirectory temporary;
    Measure(rows, directory.empty() ? temporary.path() : directory);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_status();
  }
  return 0;
}

}  // namespace
}  // namespace renzan

int main(int argc, char** argv) { return renzan::Main(argc, argv); }
