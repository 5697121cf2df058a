#include "renzan/cluster/simulate/trace.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>

#include "renzan/base/counted.h"
#include "renzan/base/duration.h"
#include "renzan/base/error.h"
#include "renzan/base/philox.h"

namespace renzan::cluster::simulate {
namespace {

constexpr std::string_view kHeader = "timestamp,duration,num_gpus,gpu_time,cluster";
constexpr int64_t kMostGpus = 1'000'000;

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "2017-10-09 07:01:55" to seconds since 1970.
std::optional<int64_t> ParseTimestamp(std::string_view text) {
  if (text.size() != 19 || text[4] != '-' || text[7] != '-' || text[10] != ' ' || text[13] != ':' ||
      text[16] != ':')
    return std::nullopt;
  const auto part = [&](size_t from, size_t length) {
    return ParseNumber<unsigned>(text.substr(from, length));
  };
  const auto year = part(0, 4), month = part(5, 2), day = part(8, 2);
  const auto hour = part(11, 2), minute = part(14, 2), second = part(17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(*month), std::chrono::day(*day)};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return days * 86400 + *hour * 3600 + *minute * 60 + *second;
}

TimeMs DrawTime(uint64_t key, uint64_t job, const TimeRange& range) {
  const double uniform = static_cast<double>(Philox::Uniform(Philox::Draw(key, job)[0]));
  const double ratio = static_cast<double>(range.most) / static_cast<double>(range.least);
  return std::llround(static_cast<double>(range.least) * std::pow(ratio, uniform));
}

// Seconds since 1970, or since any other time.
std::optional<double> ParseSubmission(std::string_view text) {
  if (const auto seconds = ParseTimestamp(text)) return static_cast<double>(*seconds);
  const auto seconds = ParseNumber<double>(text);
  return seconds && std::abs(*seconds) < 1e11 ? seconds : std::nullopt;
}

std::vector<std::string_view> Split(std::string_view line) {
  std::vector<std::string_view> values;
  for (size_t comma = line.find(','); comma != line.npos; comma = line.find(',')) {
    values.push_back(line.substr(0, comma));
    line.remove_prefix(comma + 1);
  }
  values.push_back(line);
  return values;
}

class TraceReader {
 public:
  TraceReader(const NextLine& next_line, const std::string& name, const TraceOptions& options)
      : next_line_(next_line),
        name_(name),
        options_(options),
        mapping_(options.columns.value_or(TraceColumns{})) {}

  Workload Read() {
    ReadHeader();
    Workload jobs;
    bool blank = false;  // only allowed at the end
    std::string_view line;
    while (Next(&line)) {
      if (blank && !line.empty()) FailHere("the previous line is blank, but the trace continues");
      blank |= line.empty();
      if (!blank) jobs.push_back(ReadJob(line));
    }
    if (jobs.empty()) FailHere("the trace has no jobs");
    std::stable_sort(jobs.begin(), jobs.end(), [](const WorkloadJob& a, const WorkloadJob& b) {
      return a.submitted < b.submitted;
    });
    if (options_.limit > 0 && jobs.size() > options_.limit) jobs.resize(options_.limit);
    Finish(jobs);
    return jobs;
  }

 private:
  bool Next(std::string_view* line) {
    if (!next_line_(line)) return false;
    ++line_number_;
    return true;
  }

  template <typename... Args>
  [[noreturn]] void FailHere(fmt::format_string<Args...> format, Args&&... args) {
    Fail(ErrorCode::kData, "{}:{}: {}", name_, std::max<int64_t>(line_number_, 1),
         fmt::format(format, std::forward<Args>(args)...));
  }

  void ReadHeader() {
    std::string_view line;
    const bool mapped = options_.columns.has_value();
    if (!Next(&line))
      FailHere("the trace is empty; its first line must be {}",
               mapped ? std::string_view("the names of its columns") : kHeader);
    if (!mapped && line != kHeader)
      FailHere("the first line of a trace must be {}; for other columns, see --columns", kHeader);
    header_ = std::string(line);
    const std::vector<std::string_view> names = Split(header_);
    num_columns_ = names.size();
    const auto find = [&](const std::string& name) -> std::optional<size_t> {
      if (name.empty()) return std::nullopt;
      const auto at = std::find(names.begin(), names.end(), name);
      if (at == names.end()) FailHere("there is no column '{}'; the columns are {}", name, header_);
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
      FailHere("a trace needs columns for submitted, duration and gpus");
  }

  double ReadSeconds(std::string_view text, const std::string& column, double most) {
    const auto seconds = ParseNumber<double>(text);
    if (!seconds || !(*seconds > 0) || *seconds > most)
      FailHere("{} '{}' is not a number of seconds above 0", column, text);
    return *seconds;
  }

  double DurationOf(const std::vector<std::string_view>& values, const std::string& job_name) {
    if (duration_) return ReadSeconds(values[*duration_], mapping_.duration, kLongestSeconds);
    const auto at = mapping_.duration_of.find(job_name);
    if (at == mapping_.duration_of.end())
      FailHere("{} '{}' has no duration: add it to duration_of", mapping_.name, job_name);
    return ParseDuration(at->second).value();
  }

  WorkloadJob ReadJob(std::string_view line) {
    const std::vector<std::string_view> values = Split(line);
    if (values.size() != num_columns_)
      FailHere("must have {}: {}", Counted(num_columns_, "column"), header_);
    const auto submitted = ParseSubmission(values[*submitted_]);
    if (!submitted)
      FailHere("{} '{}' is not like 2017-10-09 07:01:55, nor a number of seconds",
               mapping_.submitted, values[*submitted_]);
    WorkloadJob job;
    if (job_name_) job.name = values[*job_name_];
    const double seconds = DurationOf(values, job.name);
    const auto gpus = ParseNumber<int64_t>(values[*gpus_]);
    if (!gpus || *gpus < 1 || *gpus > kMostGpus)
      FailHere("{} '{}' is not a whole number from 1 to {}", mapping_.gpus, values[*gpus_],
               kMostGpus);
    if (gpu_time_) CheckGpuTime(values[*gpu_time_], seconds * static_cast<double>(*gpus));
    if (queue_) job.queue = values[*queue_];
    job.user = user_ ? std::string(values[*user_]) : job.queue;
    if (job.queue.empty()) FailHere("{} is empty", mapping_.queue);
    if (job.user.empty()) FailHere("{} is empty", mapping_.user);
    const Gang gang = SplitIntoGang(*gpus, options_.gpus_per_node);
    job.submitted = std::llround(*submitted * 1000);
    job.min_workers = job.max_workers = gang.workers;
    job.per_worker = options_.share_of_one_gpu * gang.gpus_per_worker;
    job.work_ms = static_cast<TimeMs>(std::ceil(seconds * 1000));
    return job;
  }

  void CheckGpuTime(std::string_view text, double product) {
    const double gpu_seconds =
        ReadSeconds(text, "gpu_time", kLongestSeconds * static_cast<double>(kMostGpus));
    if (std::abs(gpu_seconds - product) > 1 + 1e-6 * product)
      FailHere("gpu_time {} is not duration times num_gpus, {}", text, product);
  }

  void Finish(Workload& jobs) {
    const TimeMs begin = jobs.front().submitted;
    const uint64_t key = PhiloxKey(options_.seed, "trace/checkpoints");
    const uint64_t save_key = PhiloxKey(options_.seed, "trace/save");
    const uint64_t restart_key = PhiloxKey(options_.seed, "trace/restart");
    for (size_t job = 0; job < jobs.size(); ++job) {
      jobs[job].submitted -= begin;
      jobs[job].checkpoints = static_cast<double>(Philox::Uniform(Philox::Draw(key, job)[0])) <
                              options_.checkpoint_share;
      jobs[job].checkpoint_cost_ms = DrawTime(save_key, job, options_.save_ms);
      jobs[job].restart_cost_ms = DrawTime(restart_key, job, options_.restart_ms);
      jobs[job].grace_ms = std::max(jobs[job].grace_ms, jobs[job].checkpoint_cost_ms);
    }
  }

  const NextLine& next_line_;
  const std::string& name_;
  const TraceOptions& options_;
  const TraceColumns mapping_;
  std::string header_;
  size_t num_columns_ = 0;
  // Positions of the columns that there are.
  std::optional<size_t> submitted_, duration_, gpus_, gpu_time_, queue_, user_, job_name_;
  int64_t line_number_ = 0;
};

}  // namespace

Workload ReadTrace(const NextLine& next_line, const std::string& name,
                   const TraceOptions& options) {
  return TraceReader(next_line, name, options).Read();
}

}  // namespace renzan::cluster::simulate
