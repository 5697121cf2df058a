#include <sys/resource.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "renzan/base/resource_limits.h"
#include "renzan/cluster/core/order/grand_challenge.h"
#include "renzan/cluster/local/controller/manifest.h"
#include "renzan/cluster/local/server/api_json.h"
#include "renzan/cluster/local/untrusted_file.h"
#include "renzan/cluster/spec/cluster_config.h"
#include "renzan/cluster/spec/inherited.h"

namespace renzan::cluster::local {
namespace {

// The parser's time and memory are quadratic in the input.
constexpr size_t kMaxSpecBytes = 256 << 10;
constexpr size_t kMaxPathBytes = 4096;
// Beside exec's own limits (128 KiB a variable), and for as many as `max_pending_jobs`.
constexpr size_t kMaxEnvironmentBytes = 256 << 10;

void CheckSizes(const Submission& submission, const std::string& yaml,
                const std::vector<std::string>& overrides) {
  size_t bytes = yaml.size();
  for (const std::string& each : overrides) bytes += each.size();
  if (bytes > kMaxSpecBytes)
    throw BadRequest(fmt::format("the job's specification has {} KiB; at most {} KiB are allowed",
                                 bytes >> 10, kMaxSpecBytes >> 10));
  for (const std::string* path : {&submission.source, &submission.submit_dir})
    if (path->size() > kMaxPathBytes)
      throw BadRequest(
          fmt::format("source and submit_dir may have at most {} bytes", kMaxPathBytes));
}

spec::Inherited ReadInherited(const Json& body) {
  try {
    spec::Inherited inherited = spec::InheritedFromJson(body.dump());
    size_t bytes = 0;
    for (const auto& [name, value] : inherited.environment) bytes += name.size() + value.size() + 2;
    if (bytes > kMaxEnvironmentBytes)
      throw BadRequest(fmt::format(
          "the submitter's environment has {} KiB; at most {} KiB are allowed: name what the job "
          "needs (--export PATH,HOME)",
          bytes >> 10, kMaxEnvironmentBytes >> 10));
    return inherited;
  } catch (const Error& error) {
    throw BadRequest(error.what());
  }
}

// What the job will have less of than its submitter.
std::vector<std::string> Shortfalls(const spec::Inherited& inherited) {
  const auto text = [](rlim_t limit) {
    return limit == RLIM_INFINITY ? std::string("unlimited") : fmt::format("{}", limit);
  };
  std::vector<std::string> shortfalls;
  for (const auto& [name, limit] : LowerTo(OwnLimits(), inherited.limits))
    if (const rlim_t wanted = inherited.limits.at(name).soft; limit.soft < wanted)
      shortfalls.push_back(
          fmt::format("the job's limit of {} will be {}, the daemon's, instead of {}: start the "
                      "daemon with a higher hard limit",
                      name, text(limit.soft), text(wanted)));
  const int niceness = ::getpriority(PRIO_PROCESS, 0);
  if (::geteuid() != 0 && niceness > inherited.niceness)
    shortfalls.push_back(fmt::format("the job's niceness will be {}, the daemon's, instead of {}",
                                     niceness, inherited.niceness));
  return shortfalls;
}

Submission ReadSubmission(const ApiContext& context, const ApiRequest& request) {
  const Json body = ParseBody(request);
  Submission submission;
  submission.caller = WithGroups(context, request.caller);
  std::string yaml;
  std::vector<std::string> overrides;
  try {
    yaml = body.at("spec").get<std::string>();
    submission.source = body.value("source", "job");
    submission.submit_dir = body.at("submit_dir").get<std::string>();
    overrides = body.value("overrides", std::vector<std::string>());
    if (body.contains("inherited")) submission.inherited = ReadInherited(body.at("inherited"));
  } catch (const Json::exception&) {
    throw BadRequest("expected spec, source, overrides and submit_dir");
  }
  CheckSizes(submission, yaml, overrides);
  if (submission.submit_dir.empty() || submission.submit_dir.front() != '/')
    throw BadRequest("submit_dir must be an absolute path");
  spec::JobSpec& spec = submission.spec = spec::ReadJobSpec(yaml, submission.source, overrides);
  if (spec.working_directory.empty())
    spec.working_directory = submission.submit_dir;
  else if (spec.working_directory.front() != '/')
    spec.working_directory = submission.submit_dir + "/" + spec.working_directory;
  spec::RoundUpToClass(context.worker_classes, submission.source, spec);
  return submission;
}

}  // namespace

ServerAnswer SubmitJob(const ApiContext& context, const ApiRequest& request) {
  Submission submission = ReadSubmission(context, request);
  const auto& inherited = submission.inherited;
  submission.manifest =
      MakeManifest(submission.spec, submission.submit_dir, request.caller,
                   inherited ? inherited->environment : std::map<std::string, std::string>());
  const JobId id =
      context.loop.Run([&](Controller& controller) { return controller.Submit(submission); });
  const Json body = {{"id", id},
                     {"name", submission.spec.name},
                     {"warnings", inherited ? Shortfalls(*inherited) : std::vector<std::string>()}};
  return {.status = 201, .text = body.dump() + "\n"};
}

ServerAnswer PlanChallenge(const ApiContext& context, const ApiRequest& request) {
  const Submission submission = ReadSubmission(context, request);
  spec::Submitter submitter;
  Snapshot snapshot = context.loop.Run([&](Controller& controller) {
    submitter = controller.access().SubmitterOf(submission.caller);
    return controller.snapshot();
  });
  // A stop writes a full checkpoint: incremental ones are smaller.
  for (Job& each : snapshot.jobs)
    if (each.checkpoints && !each.placement.empty())
      each.state_bytes =
          LargestEntryIn(context.state_dir + "/jobs", fmt::format("{}/checkpoints", each.id));
  spec::CheckSubmission(snapshot, submission.spec, submitter);
  const Job job = spec::MakeJob(snapshot, submission.spec, request.caller.name, 0, snapshot.now);
  const GrandChallengePlan plan = PlanGrandChallenge(snapshot, job);
  const Json body = {{"stops", plan.stops},
                     {"loses_work", plan.loses_work},
                     {"bytes_to_save", plan.bytes_to_save},
                     {"gpu_seconds_lost", plan.gpu_seconds_lost},
                     {"earliest_start", plan.earliest_start},
                     {"fits", !plan.placement.empty()}};
  return {.text = body.dump() + "\n"};
}

}  // namespace renzan::cluster::local
