#include "renzan/cluster/simulate/trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"

namespace renzan::cluster::simulate {
namespace {

constexpr std::string_view kHeader = "timestamp,duration,num_gpus,gpu_time,cluster";
constexpr double kLongestSeconds = 10 * 366 * 86400.0;
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

class TraceReader {
 public:
  TraceReader(const NextLine& next_line, const std::string& name, const TraceOptions& options)
      : next_line_(next_line), name_(name), options_(options) {}

  Workload Read() {
    std::string_view line;
    if (!Next(&line)) FailHere("the trace is empty; its first line must be {}", kHeader);
    if (line != kHeader) FailHere("the first line of a trace must be {}", kHeader);
    Workload jobs;
    bool blank = false;  // only allowed at the end
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

  std::array<std::string_view, 5> Split(std::string_view line) {
    std::array<std::string_view, 5> columns;
    for (size_t column = 0; column < columns.size(); ++column) {
      const size_t comma = line.find(',');
      const bool last = column + 1 == columns.size();
      if (last != (comma == line.npos)) FailHere("must have 5 columns: {}", kHeader);
      columns[column] = line.substr(0, comma);
      if (!last) line.remove_prefix(comma + 1);
    }
    return columns;
  }

  double ReadSeconds(std::string_view text, const char* column, double most) {
    const auto seconds = ParseNumber<double>(text);
    if (!seconds || !(*seconds > 0) || *seconds > most)
      FailHere("{} '{}' is not a number of seconds above 0", column, text);
    return *seconds;
  }

  WorkloadJob ReadJob(std::string_view line) {
    const auto [timestamp, duration, num_gpus, gpu_time, cluster] = Split(line);
    const auto submitted = ParseTimestamp(timestamp);
    if (!submitted) FailHere("timestamp '{}' is not like 2017-10-09 07:01:55", timestamp);
    const double seconds = ReadSeconds(duration, "duration", kLongestSeconds);
    const auto gpus = ParseNumber<int64_t>(num_gpus);
    if (!gpus || *gpus < 1 || *gpus > kMostGpus)
      FailHere("num_gpus '{}' is not a whole number from 1 to {}", num_gpus, kMostGpus);
    const double gpu_seconds =
        ReadSeconds(gpu_time, "gpu_time", kLongestSeconds * static_cast<double>(kMostGpus));
    const double product = seconds * static_cast<double>(*gpus);
    if (std::abs(gpu_seconds - product) > 1 + 1e-6 * product)
      FailHere("gpu_time {} is not duration times num_gpus, {}", gpu_time, product);
    if (cluster.empty()) FailHere("cluster is empty");
    const Gang gang = SplitIntoGang(*gpus, options_.gpus_per_node);
    WorkloadJob job;
    job.submitted = *submitted * 1000;
    job.queue = job.user = cluster;
    job.min_workers = job.max_workers = gang.workers;
    job.per_worker = options_.share_of_one_gpu * gang.gpus_per_worker;
    job.work_ms = static_cast<TimeMs>(std::ceil(seconds * 1000));
    return job;
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
  int64_t line_number_ = 0;
};

}  // namespace

Workload ReadTrace(const NextLine& next_line, const std::string& name,
                   const TraceOptions& options) {
  return TraceReader(next_line, name, options).Read();
}

}  // namespace renzan::cluster::simulate
