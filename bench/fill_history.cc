// Fills a daemon's database with jobs that have ended: fill_history STATE.DB JOBS

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "bench/options.h"
#include "renzan/base/error.h"
#include "renzan/cluster/local/store/store.h"

namespace renzan::cluster::local {
namespace {

constexpr JobId kJobsPerTransaction = 1000;
constexpr TimeMs kFirstMs = 1'700'000'000'000, kBetweenMs = 60'000, kRunMs = 3'600'000;

// As a daemon leaves it: an attempt, three events, usage and its run time.
void PutEndedJob(Store& store, JobId id) {
  const TimeMs submitted = kFirstMs + id * kBetweenMs;
  JobRecord job;
  job.id = id;
  job.name = "train";
  job.queue = "default";
  job.spec = "name: train\ncommand: [renzan, train, config.yaml]\n";
  job.source = "job.yaml";
  job.submit_dir = "/home/ann";
  job.user = fmt::format("user-{}", id % 20);
  job.uid = 1000;
  job.gid = 1000;
  job.min_workers = 4;
  job.max_workers = 4;
  job.gpus = 1;
  job.state = RecordState::kRunning;
  job.submitted = submitted;
  job.attempts = 1;
  job.run_ms = kRunMs;
  job.first_started = submitted;
  job.exit_code = 0;
  job.manifest = "{}";
  const auto event = [&](const char* kind) {
    return EventRecord{.time = submitted, .kind = kind, .text = "by a benchmark"};
  };
  store.Put(job, event("submitted"));
  store.Put(job, event("started"));
  store.PutUsage(id, {.gpu_seconds = 4.0 * kRunMs / 1000, .cost = 10});
  job.state = RecordState::kDone;
  job.ended = submitted + kRunMs;
  store.Put(job, event("done"));
  store.AddRunTime(TraitsOf(job), kRunMs);
  store.Put(UsageSpan{.job = id,
                      .attempt = 0,
                      .queue = job.queue,
                      .user = job.user,
                      .started = submitted,
                      .ended = *job.ended,
                      .usage = store.Usage(id)});
  AttemptRecord attempt;
  attempt.job = id;
  attempt.placement = {{.node = "own-0", .workers = 4}};
  attempt.started = submitted;
  attempt.ended = job.ended;
  attempt.exit_code = 0;
  attempt.ended_by = "itself";
  store.Put(attempt);
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
  renzan::bench::Options command_line("Fills a daemon's database with jobs that have ended");
  std::string path;
  int64_t jobs = 0;
  command_line.Add("database", &path);
  command_line.AddPositive("jobs", &jobs);
  command_line.ParseOrExit(argc, argv);
  try {
    renzan::cluster::local::Fill(path, jobs);
  } catch (const renzan::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_status();
  }
}
