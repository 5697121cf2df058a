#include <nlohmann/json.hpp>

#include "renzan/cluster/core/order/grand_challenge.h"
#include "renzan/cluster/local/controller/manifest.h"
#include "renzan/cluster/local/server/api_json.h"
#include "renzan/cluster/local/untrusted_file.h"
#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster::local {
namespace {

// The parser's time and memory are quadratic in the input.
constexpr size_t kMaxSpecBytes = 256 << 10;
constexpr size_t kMaxPathBytes = 4096;

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

Submission ReadSubmission(const ApiContext& context, const ApiRequest& request) {
  const Json body = ParseBody(request);
  Submission submission{.caller = request.caller};
  std::string yaml;
  std::vector<std::string> overrides;
  try {
    yaml = body.at("spec").get<std::string>();
    submission.source = body.value("source", "job");
    submission.submit_dir = body.at("submit_dir").get<std::string>();
    overrides = body.value("overrides", std::vector<std::string>());
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

ApiResponse SubmitJob(const ApiContext& context, const ApiRequest& request) {
  Submission submission = ReadSubmission(context, request);
  submission.manifest = MakeManifest(submission.spec, submission.submit_dir, request.caller);
  const JobId id =
      context.loop.Run([&](Controller& controller) { return controller.Submit(submission); });
  return {.status = 201, .body = Json{{"id", id}, {"name", submission.spec.name}}.dump() + "\n"};
}

ApiResponse PlanChallenge(const ApiContext& context, const ApiRequest& request) {
  const Submission submission = ReadSubmission(context, request);
  Snapshot snapshot =
      context.loop.Run([](Controller& controller) { return controller.snapshot(); });
  // A stop writes a full checkpoint: incremental ones are smaller.
  for (Job& each : snapshot.jobs)
    if (each.checkpoints && !each.placement.empty())
      each.state_bytes =
          LargestEntryIn(context.state_dir + "/jobs", fmt::format("{}/checkpoints", each.id));
  spec::CheckExcludedNodes(snapshot, submission.spec);
  const Job job = spec::MakeJob(snapshot, submission.spec, request.caller.name, 0, snapshot.now);
  const GrandChallengePlan plan = PlanGrandChallenge(snapshot, job);
  const Json body = {{"stops", plan.stops},
                     {"loses_work", plan.loses_work},
                     {"bytes_to_save", plan.bytes_to_save},
                     {"gpu_seconds_lost", plan.gpu_seconds_lost},
                     {"earliest_start", plan.earliest_start},
                     {"fits", !plan.placement.empty()}};
  return {.body = body.dump() + "\n"};
}

}  // namespace renzan::cluster::local
