#include "renzan/cluster/simulate/trace.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "renzan/base/counted.h"
#include "renzan/base/duration.h"
#include "renzan/base/error.h"
#include "renzan/base/philox.h"
#include "renzan/cluster/simulate/trace_values.h"

namespace renzan::cluster::simulate {
namespace {

constexpr std::string_view kHeader = "timestamp,duration,num_gpus,gpu_time,cluster";

TimeMs DrawTime(uint64_t key, uint64_t job, const TimeRange& range) {
  const double uniform = static_cast<double>(Philox::Uniform(Philox::Draw(key, job)[0]));
  const double ratio = static_cast<double>(range.most) / static_cast<double>(range.least);
  return std::llround(static_cast<double>(range.least) * std::pow(ratio, uniform));
}

class TraceReader {
 public:
  TraceReader(const NextLine& next_line, const std::string& name, const TraceOptions& options)
      : lines_(next_line, name),
        options_(options),
        mapping_(options.columns.value_or(TraceColumns{})) {}

  Workload Read() {
    ReadHeader();
    Workload jobs;
    bool blank = false;  // only allowed at the end
    std::string_view line;
    while (lines_.Next(&line)) {
      if (blank && !line.empty())
        lines_.FailHere("the previous line is blank, but the trace continues");
      blank |= line.empty();
      if (!blank) jobs.push_back(ReadJob(line));
    }
    if (jobs.empty()) lines_.FailHere("the trace has no jobs");
    FinishTrace(jobs, options_);
    return jobs;
  }

 private:
  std::vector<std::string> FieldsOf(std::string_view line) {
    auto fields = SplitFields(line, ',');
    if (!fields)
      lines_.FailHere("a quoted field does not end before a comma or the end of the line");
    return *std::move(fields);
  }

  void ReadHeader() {
    std::string_view line;
    const bool mapped = options_.columns.has_value();
    if (!lines_.Next(&line))
      lines_.FailHere("the trace is empty; its first line must be {}",
                      mapped ? std::string_view("the names of its columns") : kHeader);
    if (!mapped && line != kHeader)
      lines_.FailHere("the first line of a trace must be {}; for other columns, see --columns",
                      kHeader);
    header_ = std::string(line);
    const std::vector<std::string> names = FieldsOf(line);
    num_columns_ = names.size();
    const auto find = [&](const std::string& name) -> std::optional<size_t> {
      if (name.empty()) return std::nullopt;
      const auto at = std::find(names.begin(), names.end(), name);
      if (at == names.end())
        lines_.FailHere("there is no column '{}'; the columns are {}", name, header_);
      return static_cast<size_t>(at - names.begin());
    };
    submitted_ = find(mapping_.submitted);
    gpus_ = find(mapping_.gpus);
    queue_ = find(mapping_.queue);
    user_ = find(mapping_.user);
    job_name_ = find(mapping_.name);
    if (mapping_.duration_of.empty()) duration_ = find(mapping_.duration);
    if (!mapped) gpu_time_ = find("gpu_time");
    if (!submitted_ || !gpus_ || (mapping_.duration_of.empty() && !duration_))
      lines_.FailHere("a trace needs columns for submitted, duration and gpus");
  }

  double ReadSeconds(std::string_view text, const std::string& column, double most) {
    const auto seconds = ParseElapsed(text);
    if (!seconds || !(*seconds > 0) || *seconds > most)
      lines_.FailHere("{} '{}' is not a duration above 0, such as 90 (seconds), 00:01:30 or 1m30s",
                      column, text);
    return *seconds;
  }

  double DurationOf(const std::vector<std::string>& values, const std::string& job_name) {
    if (duration_) return ReadSeconds(values[*duration_], mapping_.duration, kLongestSeconds);
    const auto at = mapping_.duration_of.find(job_name);
    if (at == mapping_.duration_of.end())
      lines_.FailHere("{} '{}' has no duration: add it to duration_of", mapping_.name, job_name);
    return ParseDuration(at->second).value();
  }

  WorkloadJob ReadJob(std::string_view line) {
    const std::vector<std::string> values = FieldsOf(line);
    if (values.size() != num_columns_)
      lines_.FailHere("must have {}: {}", Counted(num_columns_, "column"), header_);
    const auto submitted = ParseSubmission(values[*submitted_]);
    if (!submitted)
      lines_.FailHere(
          "{} '{}' is not like 2017-10-09 07:01:55 or 2017-10-09T07:01:55Z, nor a number of "
          "seconds",
          mapping_.submitted, values[*submitted_]);
    WorkloadJob job;
    if (job_name_) job.name = values[*job_name_];
    const double seconds = DurationOf(values, job.name);
    const auto gpus = ParseWhole(values[*gpus_]);
    if (!gpus || *gpus < 1 || *gpus > kMostGpusOfAJob)
      lines_.FailHere("{} '{}' is not a whole number from 1 to {}", mapping_.gpus, values[*gpus_],
                      kMostGpusOfAJob);
    if (gpu_time_) CheckGpuTime(values[*gpu_time_], seconds * static_cast<double>(*gpus));
    if (queue_) job.queue = values[*queue_];
    job.user = user_ ? values[*user_] : job.queue;
    if (job.queue.empty()) lines_.FailHere("{} is empty", mapping_.queue);
    if (job.user.empty()) lines_.FailHere("{} is empty", mapping_.user);
    job.submitted = std::llround(*submitted * 1000);
    SetGpus(*gpus, options_, job);
    job.work_ms = static_cast<TimeMs>(std::ceil(seconds * 1000));
    return job;
  }

  void CheckGpuTime(std::string_view text, double product) {
    const double gpu_seconds =
        ReadSeconds(text, "gpu_time", kLongestSeconds * static_cast<double>(kMostGpusOfAJob));
    if (std::abs(gpu_seconds - product) > 1 + 1e-6 * product)
      lines_.FailHere("gpu_time {} is not duration times num_gpus, {}", text, product);
  }

  TraceLines lines_;
  const TraceOptions& options_;
  const TraceColumns mapping_;
  std::string header_;
  size_t num_columns_ = 0;
  // Positions of the columns that there are.
  std::optional<size_t> submitted_, duration_, gpus_, gpu_time_, queue_, user_, job_name_;
};

}  // namespace

void SetGpus(int64_t gpus, const TraceOptions& options, WorkloadJob& job) {
  const Gang gang = SplitIntoGang(gpus, options.gpus_per_node);
  job.min_workers = job.max_workers = gang.workers;
  job.per_worker = options.share_of_one_gpu * gang.gpus_per_worker;
}

void FinishTrace(Workload& jobs, const TraceOptions& options) {
  std::stable_sort(jobs.begin(), jobs.end(), [](const WorkloadJob& a, const WorkloadJob& b) {
    return a.submitted < b.submitted;
  });
  if (options.limit > 0 && jobs.size() > options.limit) jobs.resize(options.limit);
  const TimeMs begin = jobs.front().submitted;
  const uint64_t key = PhiloxKey(options.seed, "trace/checkpoints");
  const uint64_t save_key = PhiloxKey(options.seed, "trace/save");
  const uint64_t restart_key = PhiloxKey(options.seed, "trace/restart");
  for (size_t job = 0; job < jobs.size(); ++job) {
    jobs[job].submitted -= begin;
    jobs[job].checkpoints =
        static_cast<double>(Philox::Uniform(Philox::Draw(key, job)[0])) < options.checkpoint_share;
    jobs[job].checkpoint_cost_ms = DrawTime(save_key, job, options.save_ms);
    jobs[job].restart_cost_ms = DrawTime(restart_key, job, options.restart_ms);
    jobs[job].grace_ms = std::max(jobs[job].grace_ms, jobs[job].checkpoint_cost_ms);
  }
}

Workload ReadTrace(const NextLine& next_line, const std::string& name,
                   const TraceOptions& options) {
  return TraceReader(next_line, name, options).Read();
}

}  // namespace renzan::cluster::simulate
