// Measures how fast checkpoints are written and verified, compared with the limits of the machine:
// plain write(2), and reading a mapped file once. Also measures how long training waits for
// status.json.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "bench/options.h"
#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/checkpoint/quantize.h"
#include "renzan/checkpoint/reader.h"
#include "renzan/checkpoint/writer.h"
#include "renzan/observe/status_file.h"
#include "renzan/observe/status_writer.h"

namespace renzan {
namespace {

constexpr int64_t kDim = 16;

// The median over `repeats`.
double Seconds(int repeats, const std::function<void()>& body) {
  std::vector<double> seconds;
  for (int i = 0; i <= repeats; ++i) {
    const double begin = SystemClock().MonotonicSeconds();
    body();
    if (i > 0) seconds.push_back(SystemClock().MonotonicSeconds() - begin);  // the first warms up
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

// Like the writer without checksums: copies pieces of the table, writes and fsyncs.
void PlainWrite(const std::string& path, std::span<const float> values) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) FailErrno(errno, path);
  const auto bytes = std::as_bytes(values);
  constexpr size_t kPiece = 1 << 18;
  for (size_t begin = 0; begin < bytes.size(); begin += kPiece) {
    const size_t size = std::min(kPiece, bytes.size() - begin);
    if (::write(fd, bytes.data() + begin, size) != static_cast<ssize_t>(size))
      FailErrno(errno, path);
  }
  ::fsync(fd);
  ::close(fd);
}

void Print(const char* what, double bytes, double seconds, double limit) {
  fmt::print("{:<34} {:>8.0f} MB/s   {:>5.2f} of the limit\n", what, bytes / seconds / 1e6,
             limit / seconds);
}

void Run(int64_t rows, int repeats, const std::string& parent) {
  const std::string dir = parent.empty() ? "." : parent;
  std::vector<float> values(static_cast<size_t>(rows * kDim));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1009) * 1e-3f;
  const double bytes = static_cast<double>(values.size() * sizeof(float));
  const TensorSource source = SourceOf("embedding.C1.weight", {rows, kDim}, values);
  const std::string plain = dir + "/checkpoint_bench.plain", name = "checkpoint_bench.file";
  const auto write = [&](std::span<const TensorSource> sources, bool hash) {
    return Seconds(repeats,
                   [&] { WriteCheckpointFile(dir, name, sources, {.hash_tensors = hash}); });
  };
  fmt::print("{:.0f} MB, table [{}, {}], {} repeats\n", bytes / 1e6, rows, kDim, repeats);
  const double limit = Seconds(repeats, [&] { PlainWrite(plain, values); });
  Print("write(2) and fsync", bytes, limit, limit);
  Print("checkpoint file", bytes, write(std::span(&source, 1), false), limit);
  Print("saved model file (SHA-256)", bytes, write(std::span(&source, 1), true), limit);
  const double int8 = Seconds(repeats, [&] {
    const float* next = values.data();
    const QuantizedSources rows8 =
        QuantizeRows("embedding.C1.weight", rows, kDim, [&](std::span<float> out) {
          std::copy_n(next, out.size(), out.begin());
          next += out.size();
        });
    WriteCheckpointFile(dir, name, std::span(&rows8.codes, 1), {});
    WriteCheckpointFile(dir, name, rows8.scales, {});
  });
  Print("int8 rows (unquantized bytes)", bytes, int8, limit);
  std::remove(plain.c_str());
  std::remove((dir + "/" + name).c_str());
}

void RunReader(int64_t rows, int repeats, const std::string& parent) {
  const std::string path = (parent.empty() ? "." : parent) + "/checkpoint_bench.dir";
  std::vector<float> values(static_cast<size_t>(rows * kDim), 0.5f);
  const double bytes = static_cast<double>(values.size() * sizeof(float));
  const TensorSource source = SourceOf("embedding.C1.weight", {rows, kDim}, values);
  {
    CheckpointWriter writer(path);
    CheckpointManifest manifest;
    manifest.files = {WriteCheckpointFile(writer.location(), "t", std::span(&source, 1), {})};
    writer.Commit(manifest);
  }
  const auto read = [&](bool verify) {
    return Seconds(repeats, [&] {
      CheckpointReader(path, verify).Read("embedding.C1.weight", {rows, kDim}, values);
    });
  };
  const double limit = read(false);
  Print("read without checksums", bytes, limit, limit);
  Print("read and verified", bytes, read(true), limit);
  std::remove((path + "/t").c_str());
  std::remove((path + "/manifest.json").c_str());
  ::rmdir(path.c_str());
}

void RunStatusFile(int repeats, const std::string& parent) {
  const std::string path = (parent.empty() ? "." : parent) + "/checkpoint_bench.status";
  int64_t step = 0;
  const double in_place = Seconds(repeats, [&] { WriteStatusFile(path, {.step = ++step}); });
  fmt::print("{:<34} {:>8.3f} ms\n", "status.json, written synchronously", in_place * 1e3);
  {
    StatusWriter writer(path);
    const double in_background = Seconds(repeats, [&] { writer.Write({.step = ++step}); });
    fmt::print("{:<34} {:>8.3f} ms\n", "status.json, in the background", in_background * 1e3);
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace renzan

int main(int argc, char** argv) {
  renzan::bench::Options command_line("Speed of checkpoint files compared with plain write(2)");
  int64_t rows = 4'000'000;
  int repeats = 5;
  std::string dir;
  command_line.Add("--rows", &rows, "of a table with 16 columns");
  command_line.Add("--repeats", &repeats);
  command_line.Add("--dir", &dir, "where to write (default: here)");
  command_line.ParseOrExit(argc, argv);
  renzan::Run(rows, repeats, dir);
  renzan::RunReader(rows, repeats, dir);
  renzan::RunStatusFile(std::max(repeats, 50), dir);
  return 0;
}
