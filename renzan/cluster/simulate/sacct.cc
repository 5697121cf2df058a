#include "renzan/cluster/simulate/sacct.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cluster/simulate/trace_values.h"

namespace renzan::cluster::simulate {
namespace {

// "billing=32,cpu=32,gres/gpu:a100=8,gres/gpu=8,mem=256G,node=1": the total, which older versions
// do not print beside the types. None if that is no number.
std::optional<int64_t> GpusOf(const std::string& tres) {
  std::optional<int64_t> total;
  int64_t typed = 0;
  for (const std::string& entry : SplitFields(tres, ',').value_or(std::vector<std::string>{})) {
    const size_t equals = entry.find('=');
    const std::string resource = entry.substr(0, equals);
    if (resource != "gres/gpu" && !resource.starts_with("gres/gpu:")) continue;
    const auto count = ParseWhole(equals == entry.npos ? "" : entry.substr(equals + 1));
    if (!count || *count < 0 || *count > kMostGpusOfAJob) return std::nullopt;
    if (resource == "gres/gpu")
      total = *count;
    else
      typed += *count;
  }
  return total.value_or(typed);
}

class SacctReader {
 public:
  SacctReader(const NextLine& next_line, const std::string& name, const TraceOptions& options)
      : lines_(next_line, name), name_(name), options_(options) {}

  Workload Read() {
    std::string_view line;
    if (!lines_.Next(&line))
      lines_.FailHere("it is empty; its first line must be the names of sacct's fields");
    ReadHeader(line);
    Workload jobs;
    while (lines_.Next(&line))
      if (!line.empty()) ReadJob(line, jobs);
    SayWhatIsLeftOut();
    if (jobs.empty()) lines_.FailHere("no job in it used GPUs");
    FinishTrace(jobs, options_);
    return jobs;
  }

 private:
  void ReadHeader(std::string_view line) {
    names_ = *SplitFields(line, '|');
    // The first of these that there is.
    const auto find = [&](std::initializer_list<const char*> wanted) -> std::optional<size_t> {
      for (const char* name : wanted)
        if (const auto at = std::find(names_.begin(), names_.end(), name); at != names_.end())
          return static_cast<size_t>(at - names_.begin());
      return std::nullopt;
    };
    submit_ = find({"Submit"});
    elapsed_ = find({"ElapsedRaw", "Elapsed"});
    tres_ = find({"AllocTRES", "ReqTRES"});
    queue_ = find({"Account", "Partition"});
    user_ = find({"User"});
    job_name_ = find({"JobName"});
    id_ = find({"JobID", "JobIDRaw"});
    if (!submit_ || !elapsed_ || !tres_)
      lines_.FailHere(
          "the fields must include Submit, ElapsedRaw and AllocTRES: use sacct --allusers "
          "--allocations --parsable2 "
          "--format=JobID,JobName,User,Account,Submit,ElapsedRaw,AllocTRES");
  }

  void ReadJob(std::string_view line, Workload& jobs) {
    const std::vector<std::string> values = *SplitFields(line, '|');
    if (values.size() != names_.size())
      lines_.FailHere("must have {}, as the first line, but has {}",
                      Counted(names_.size(), "field"), values.size());
    // "4711.batch"; the job itself has a line of its own.
    if (id_ && values[*id_].find('.') != std::string::npos) return void(++steps_);
    const auto gpus = GpusOf(values[*tres_]);
    if (!gpus) lines_.FailHere("{} '{}' has no number of GPUs", names_[*tres_], values[*tres_]);
    if (*gpus == 0) return void(++without_gpus_);
    const auto seconds = ParseElapsed(values[*elapsed_]);
    if (!seconds || !(*seconds >= 0) || *seconds > kLongestSeconds)
      lines_.FailHere("{} '{}' is not a duration", names_[*elapsed_], values[*elapsed_]);
    if (*seconds == 0) return void(++not_run_);
    const auto submitted = ParseSubmission(values[*submit_]);
    if (!submitted)
      lines_.FailHere("Submit '{}' is not like 2017-10-09T07:01:55", values[*submit_]);
    WorkloadJob job;
    const auto take = [&](const std::optional<size_t>& column, std::string& value) {
      if (column && !values[*column].empty()) value = values[*column];
    };
    take(queue_, job.queue);
    job.user = job.queue;
    take(user_, job.user);
    take(job_name_, job.name);
    job.submitted = std::llround(*submitted * 1000);
    job.work_ms = static_cast<TimeMs>(std::ceil(*seconds * 1000));
    SetGpus(*gpus, options_, job);
    jobs.push_back(std::move(job));
  }

  void SayWhatIsLeftOut() const {
    std::vector<std::string> left_out;
    if (without_gpus_ > 0) left_out.push_back(Counted(without_gpus_, "job") + " without GPUs");
    if (not_run_ > 0) left_out.push_back(Counted(not_run_, "job") + " that did not run");
    if (steps_ > 0) left_out.push_back(Counted(steps_, "job step"));
    if (!left_out.empty()) LogWarning("{}: left out: {}", name_, fmt::join(left_out, ", "));
  }

  TraceLines lines_;
  const std::string& name_;
  const TraceOptions& options_;
  std::vector<std::string> names_;
  std::optional<size_t> submit_, elapsed_, tres_, queue_, user_, job_name_, id_;
  int64_t steps_ = 0, without_gpus_ = 0, not_run_ = 0;
};

}  // namespace

Workload ReadSacct(const NextLine& next_line, const std::string& name,
                   const TraceOptions& options) {
  return SacctReader(next_line, name, options).Read();
}

}  // namespace renzan::cluster::simulate
