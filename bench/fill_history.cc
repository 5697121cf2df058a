// Fills a daemon's database with jobs that have ended: fill_history STATE.DB JOBS

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

#include "renzan/base/error.h"
#include "renzan/cluster/local/store/store.h"

namespace renzan::cluster::local {
namespace {

constexpr JobId kJobsPerTransaction = 1000;
constexpr TimeMs kFirstMs = 1'700'000'000'000, kBetweenMs = 60'000, kRunMs = 3'600'000;

// As a daemon leaves it: an attempt, three events, usage and its run time.
void PutEndedJob(Store& store, JobId id) {
  const TimeMs submitted = kFirstMs + id * kBetweenMs;
  JobRecord job{.id = id,
                .name = "train",
                .queue = "default",
                .spec = "name: train\ncommand: [renzan, train, config.yaml]\n",
                .source = "job.yaml",
                .submit_dir = "/home/ann",
                .user = fmt::format("user-{}", id % 20),
                .uid = 1000,
                .gid = 1000,
                .min_workers = 4,
                .max_workers = 4,
                .gpus = 1,
                .state = RecordState::kRunning,
                .submitted = submitted,
                .attempts = 1,
                .run_ms = kRunMs,
                .started = submitted,
                .exit_code = 0,
                .manifest = "{}"};
  store.Put(job);
  store.PutUsage(id, {.gpu_seconds = 4.0 * kRunMs / 1000, .cost = 10});
  job.state = RecordState::kDone;
  job.ended = submitted + kRunMs;
  store.Put(job);
  store.AddRunTime(TraitsOf(job), kRunMs);
  store.Put(AttemptRecord{.job = id,
                          .placement = {{.node = "own-0", .workers = 4}},
                          .started = submitted,
                          .ended = job.ended,
                          .exit_code = 0,
                          .ended_by = "itself"});
  for (const char* kind : {"submitted", "started", "done"})
    store.AddEvent({.job = id, .time = submitted, .kind = kind, .text = "by a benchmark"});
}

void Fill(const std::string& path, JobId jobs) {
  Store store(path);
  for (JobId first = 1; first <= jobs; first += kJobsPerTransaction)
    store.Transact([&] {
      const JobId end = std::min(first + kJobsPerTransaction, jobs + 1);
      for (JobId id = first; id < end; ++id) PutEndedJob(store, id);
    });
}

}  // namespace
}  // namespace renzan::cluster::local

int main(int argc, char** argv) {
  CLI::App app("Fills a daemon's database with jobs that have ended");
  std::string path;
  int64_t jobs = 0;
  app.add_option("database", path)->required();
  app.add_option("jobs", jobs)->required()->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    renzan::cluster::local::Fill(path, jobs);
  } catch (const renzan::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_status();
  }
}
