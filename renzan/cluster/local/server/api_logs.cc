#include <memory>

#include "renzan/base/counted.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/local/server/api.h"
#include "renzan/cluster/local/server/log_stream.h"

namespace renzan::cluster::local {

ServerAnswer JobLogs(const ApiContext& context, const ApiRequest& request) {
  const JobId id = JobInPath(request);
  const int64_t worker = NumberIn(request, "worker", 0);
  const int64_t tail = NumberIn(request, "tail", -1);
  const int64_t wanted = NumberIn(request, "attempt", -1);
  const bool follow = NumberIn(request, "follow", 0) != 0;
  const bool later_attempts = wanted < 0 || NumberIn(request, "later_attempts", 0) != 0;
  JobRecord job;
  std::vector<AttemptRecord> attempts;
  context.loop.Run([&](Controller& controller) {
    job = controller.View(id).record;
    controller.access().RequireOwner(job, request.caller);
    attempts = controller.store().Attempts(id);
  });
  // Who follows a job before its start follows its first attempt.
  const bool is_first = follow && later_attempts && wanted == 0;
  if (wanted >= static_cast<int64_t>(attempts.size()) && !is_first)
    Fail(ErrorCode::kNoInput, "job {} has {}, numbered from 0: there is no attempt {}", id,
         Counted(attempts.size(), "attempt"), wanted);
  if (attempts.empty() && !follow)
    Fail(ErrorCode::kNoInput, "job {} has not started yet: there is no output", id);
  const int64_t attempt =
      wanted >= 0 ? wanted : std::max<int64_t>(0, static_cast<int64_t>(attempts.size()) - 1);
  if (!attempts.empty())
    if (const int workers = NumWorkers(attempts[attempt].placement); worker >= workers)
      Fail(ErrorCode::kNoInput, "attempt {} of job {} has {}, numbered from 0", attempt, id,
           Counted(workers, "worker"));

  if (!attempts.empty() && attempt + 1 < static_cast<int64_t>(attempts.size()) &&
      !FileExists(fmt::format("{}/jobs/{}/attempt-{}", context.state_dir, id, attempt)))
    Fail(ErrorCode::kNoInput,
         "the logs of attempt {} of job {} have been deleted: only the newest attempts of an "
         "unfinished job are kept (retention.keep_attempts)",
         attempt, id);

  // The loop may end before the stream, which is not the job's end.
  const auto job_now = [&loop = context.loop, id, wanted,
                        later_attempts]() -> std::optional<LogStream::JobNow> {
    try {
      return loop.Run([&](Controller& controller) -> LogStream::JobNow {
        const JobRecord record = controller.View(id).record;
        bool ended = HasEnded(record.state);
        if (!later_attempts)
          ended = controller.store().Attempts(id).at(static_cast<size_t>(wanted)).ended.has_value();
        return {.attempts = record.attempts, .ended = ended};
      });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNoInput) return std::nullopt;
      return LogStream::JobNow{.ended = true};  // it has ended and been deleted
    }
  };
  const auto stream =
      std::make_shared<LogStream>(LogRequest{.jobs_dir = context.state_dir + "/jobs",
                                             .job = id,
                                             .attempt = static_cast<int>(attempt),
                                             .worker = static_cast<int>(worker),
                                             .owner = job.uid,
                                             .follow = follow,
                                             .later_attempts = later_attempts,
                                             .tail = tail,
                                             .from = NumberIn(request, "from", 0),
                                             .framed = NumberIn(request, "frames", 0) != 0},
                                  job_now, request.client_fd, context.stop_fd);
  return {.stream = [stream](char* data, size_t max) { return stream->Read(data, max); }};
}

}  // namespace renzan::cluster::local
