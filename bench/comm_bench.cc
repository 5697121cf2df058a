// Measures exchanges and reductions between workers on this machine, for every backend, compared
// with a plain copy. Prints the median time of an operation and the bytes per second that one
// worker sends.
//
//   comm_bench [--workers 2] [--threads 1] [--repeats 30] [--max-bytes 4194304]
//
// As a worker that a launcher started on one of several hosts (bench/two_levels), only all-to-all,
// directly and in two levels:
//
//   comm_bench --worker-backend gloo --per-host 4

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bench/options.h"
#include "renzan/base/error.h"
#include "renzan/comm/backends.h"
#include "renzan/comm/tree_reduce.h"
#include "renzan/comm/virtual_workers.h"
#include "renzan/launch/elastic.h"

namespace renzan {
namespace {

constexpr int kVirtualWorkers = 8;

struct Options {
  int workers = 2;
  int threads = 1;
  int repeats = 30;
  size_t max_bytes = size_t{4} << 20;
  std::string worker_backend;  // set in the workers that this program starts
  int per_host = 0;            // workers of a host, whose ranks follow each other
};

double MedianSeconds(int repeats, const std::function<void()>& body) {
  std::vector<double> seconds;
  for (int i = 0; i < repeats + 2; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (i >= 2) seconds.push_back(taken.count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
  return seconds[static_cast<size_t>(repeats / 2)];
}

void PrintRow(const char* backend, const std::string& operation, size_t bytes, double seconds) {
  std::printf("%-6s %-22s %10.1f KiB %10.1f us %8.2f GB/s\n", backend, operation.c_str(),
              static_cast<double>(bytes) / 1024, seconds * 1e6,
              static_cast<double>(bytes) / seconds / 1e9);
  std::fflush(stdout);
}

// `bytes`: sent by one worker to all others together.
void MeasureAllToAll(const Options& options, Communicator& communicator, size_t bytes) {
  const auto world = static_cast<size_t>(communicator.world_size());
  const size_t part = bytes / std::max<size_t>(1, world - 1);
  std::vector<std::byte> sent(part * world), received(part * world);
  std::vector<std::span<const std::byte>> send;
  std::vector<std::span<std::byte>> recv;
  for (size_t p = 0; p < world; ++p) {
    send.emplace_back(sent.data() + p * part, part);
    recv.emplace_back(received.data() + p * part, part);
  }
  const double seconds =
      MedianSeconds(options.repeats, [&] { communicator.AllToAllV(send, recv); });
  if (communicator.rank() == 0)
    PrintRow(communicator.backend(), "all-to-all", part * (world - 1), seconds);
}

// In two levels: workers first exchange within their host, so that each of them sends one message
// to one worker of every other host, in place of one to each.
class TwoLevels {
 public:
  // `part`: bytes from one worker to another.
  TwoLevels(Communicator& communicator, size_t per_host, size_t part)
      : communicator_(communicator),
        per_host_(per_host),
        hosts_(static_cast<size_t>(communicator.world_size()) / per_host),
        part_(part),
        send_(per_host * hosts_ * part),
        within_(send_.size()),
        packed_(send_.size()),
        received_(send_.size()) {}

  void Run() {
    const auto rank = static_cast<size_t>(communicator_.rank()), host = rank / per_host_;
    // `send_` is ordered by the worker within its host, then by host.
    Exchange(send_, within_, hosts_ * part_,
             [&](size_t p) { return p / per_host_ == host ? p % per_host_ : kNone; });
    for (size_t source = 0; source < per_host_; ++source)
      for (size_t h = 0; h < hosts_; ++h)
        std::memcpy(&packed_[(h * per_host_ + source) * part_],
                    &within_[(source * hosts_ + h) * part_], part_);
    Exchange(packed_, received_, per_host_ * part_,
             [&](size_t p) { return p % per_host_ == rank % per_host_ ? p / per_host_ : kNone; });
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  // index(p): which piece of `bytes` is worker p's.
  template <class Index>
  void Exchange(const std::vector<std::byte>& from, std::vector<std::byte>& to, size_t bytes,
                const Index& index) {
    std::vector<std::span<const std::byte>> send(hosts_ * per_host_);
    std::vector<std::span<std::byte>> recv(send.size());
    for (size_t p = 0; p < send.size(); ++p) {
      if (index(p) == kNone) continue;
      send[p] = {&from[index(p) * bytes], bytes};
      recv[p] = {&to[index(p) * bytes], bytes};
    }
    communicator_.AllToAllV(send, recv);
  }

  Communicator& communicator_;
  const size_t per_host_, hosts_, part_;
  std::vector<std::byte> send_, within_, packed_, received_;
};

void MeasureLevels(const Options& options, Communicator& communicator) {
  const auto world = static_cast<size_t>(communicator.world_size());
  const auto per_host = static_cast<size_t>(options.per_host);
  if (world % per_host != 0)
    Fail(ErrorCode::kUsage, "{} workers are not {} on each host", world, per_host);
  for (size_t bytes = 4096; bytes <= options.max_bytes; bytes *= 4) {
    MeasureAllToAll(options, communicator, bytes);
    const size_t part = bytes / (world - 1);
    TwoLevels levels(communicator, per_host, part);
    const double seconds = MedianSeconds(options.repeats, [&] { levels.Run(); });
    if (communicator.rank() == 0)
      PrintRow(communicator.backend(), "two levels", part * (world - 1), seconds);
  }
}

// Throughput in bytes of the arrays that one worker reduces.
void MeasureTreeReduce(const Options& options, Communicator& communicator, FloatType wire) {
  const size_t length = options.max_bytes / sizeof(float);
  ThreadPool pool(options.threads);
  TreeReducer reducer(communicator, pool, kVirtualWorkers, length, wire);
  const IndexRange own =
      VirtualWorkerRange(kVirtualWorkers, communicator.world_size(), communicator.rank());
  std::vector<std::vector<float>> arrays(static_cast<size_t>(own.size()),
                                         std::vector<float>(length));
  const std::vector<std::span<float>> leaves(arrays.begin(), arrays.end());
  std::vector<float> sum(length);
  const double seconds = MedianSeconds(options.repeats, [&] { reducer.Reduce(leaves, sum); });
  if (communicator.rank() == 0)
    PrintRow(communicator.backend(), std::string("tree reduce ") + Name(wire),
             length * sizeof(float) * arrays.size(), seconds);
}

void MeasureBackend(const Options& options, Communicator& communicator) {
  if (communicator.world_size() > 1)
    for (size_t bytes = 4096; bytes <= options.max_bytes; bytes *= 4)
      MeasureAllToAll(options, communicator, bytes);
  for (FloatType wire : {FloatType::kFloat32, FloatType::kFloat16, FloatType::kBFloat16})
    MeasureTreeReduce(options, communicator, wire);
}

void MeasureThisMachine(const Options& options) {
  std::vector<float> values(options.max_bytes / sizeof(float), 0.125f), copy(values.size());
  std::vector<std::byte> wire(options.max_bytes);
  PrintRow("-", "copy", options.max_bytes, MedianSeconds(options.repeats, [&] {
             std::memcpy(copy.data(), values.data(), options.max_bytes);
           }));
  for (FloatType type : {FloatType::kFloat16, FloatType::kBFloat16}) {
    PrintRow("-", std::string("encode ") + Name(type), options.max_bytes,
             MedianSeconds(options.repeats, [&] { Encode(type, values, wire.data()); }));
    PrintRow("-", std::string("decode ") + Name(type), options.max_bytes,
             MedianSeconds(options.repeats, [&] { Decode(type, wire.data(), copy); }));
  }
}

int Run(const Options& options, const std::vector<std::string>& argv) {
  if (!options.worker_backend.empty()) {
    const auto rendezvous =
        RendezvousFromEnvironment([](const char* name) { return getenv(name); });
    const auto communicator =
        MakeCommunicator(options.worker_backend, rendezvous.value_or(Rendezvous{}), 60);
    if (options.per_host > 0)
      MeasureLevels(options, *communicator);
    else
      MeasureBackend(options, *communicator);
    return 0;
  }
  MeasureThisMachine(options);
  MeasureBackend(options, *MakeLocalCommunicator());
  for (const char* backend : {"gloo", "mpi"}) {
    LaunchOptions launch;
    launch.workers = options.workers;
    launch.backend = backend;
    launch.argv = argv;
    launch.argv.insert(launch.argv.end(), {"--worker-backend", backend});
    if (const int status = LaunchElastic(launch).last.exit_status; status != 0) return status;
  }
  return 0;
}

}  // namespace
}  // namespace renzan

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a peer's death is an Error
  renzan::Options options;
  renzan::bench::Options command_line(
      "Measures exchange and reduction between workers of this machine");
  command_line.AddInRange("--workers", &options.workers, 2, renzan::kVirtualWorkers);
  command_line.AddInRange("--threads", &options.threads, 1, 256, "per worker");
  command_line.AddInRange("--repeats", &options.repeats, 1, 1000000);
  command_line.Add("--max-bytes", &options.max_bytes,
                   "sent by one worker, and of one reduced array");
  command_line.Add("--worker-backend", &options.worker_backend);
  command_line.AddPositive("--per-host", &options.per_host);
  command_line.ParseOrExit(argc, argv);
  try {
    return renzan::Run(options, {argv, argv + argc});
  } catch (const renzan::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.exit_status();
  }
}
