#include "renzan/cluster/spec/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"

namespace renzan::cluster::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The message of the kConfig error thrown on reading.
std::string JobError(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  try {
    ReadJobSpec(yaml, "job.yaml", overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.what();
  }
  return "no error";
}

// The same for a valid job with one more line.
std::string JobErrorWith(const std::string& line) { return JobError("command: [true]\n" + line); }

constexpr const char* kWholeJob = R"(
name: kaggle
queue: research
priority: -3
replicas: 2..8
command: [renzan, train, "a b", '']
environment: {OMP_NUM_THREADS: 4, GREETING: "hello\nworld"}
working_directory: /data/with blank
artifacts: out
resources: {cpu: 0.5, memory: 32GiB, gpu: 8, other: {nic: 1}}
constraints:
  required: {gpu_model: a100}
  preferred: {rack: r1}
  topology: rack
  topology_required: true
  exclude_nodes: [own-3]
checkpoint: {on_stop: true, on_request: true, max_interval: 5m}
grace: 2m
retries: 3
retry_backoff: 10s
timeout: 2d
preemptible: false
grand_challenge: true
)";

TEST(JobSpec, ReadsEverything) {
  const JobSpec spec = ReadJobSpec(kWholeJob, "job.yaml");
  EXPECT_EQ(spec.name, "kaggle");
  EXPECT_EQ(spec.queue, "research");
  EXPECT_EQ(spec.priority, -3);
  EXPECT_EQ(spec.min_workers(), 2);
  EXPECT_EQ(spec.max_workers(), 8);
  EXPECT_THAT(spec.command, ElementsAre("renzan", "train", "a b", ""));
  EXPECT_THAT(spec.constraints.exclude_nodes, ElementsAre("own-3"));
  EXPECT_EQ(spec.environment.at("OMP_NUM_THREADS"), "4");
  EXPECT_EQ(spec.environment.at("GREETING"), "hello\nworld");
  EXPECT_EQ(spec.working_directory, "/data/with blank");
  EXPECT_EQ(spec.artifacts, "out");
  EXPECT_EQ(spec.resources.cpu, 0.5);
  EXPECT_EQ(spec.resources.memory, "32GiB");
  EXPECT_EQ(spec.resources.gpu, 8);
  EXPECT_EQ(spec.resources.other.at("nic"), 1);
  EXPECT_EQ(spec.constraints.required.at("gpu_model"), "a100");
  EXPECT_EQ(spec.constraints.preferred.at("rack"), "r1");
  EXPECT_EQ(spec.constraints.topology, "rack");
  EXPECT_TRUE(spec.constraints.topology_required);
  EXPECT_TRUE(spec.checkpoint.on_stop);
  EXPECT_TRUE(spec.checkpoint.on_request);
  EXPECT_EQ(spec.max_checkpoint_interval_ms(), 300'000);
  EXPECT_EQ(spec.grace_ms(), 120'000);
  EXPECT_EQ(spec.retries, 3);
  EXPECT_EQ(spec.retry_backoff_ms(), 10'000);
  EXPECT_EQ(spec.timeout_ms(), 172'800'000);
  EXPECT_FALSE(spec.preemptible);
  EXPECT_TRUE(spec.grand_challenge);
}

TEST(JobSpec, PrintedYamlReadsBack) {
  const std::string text = PrintJobSpec(ReadJobSpec(kWholeJob, "job.yaml"));
  EXPECT_EQ(PrintJobSpec(ReadJobSpec(text, "printed")), text);
  for (const char* value : {"research", "2..8", "hello", "/data/with blank", "32GiB", "a100", "5m"})
    EXPECT_THAT(text, HasSubstr(value));
}

TEST(JobSpec, ACommandIsEnough) {
  const JobSpec spec =
      ReadJobSpec("", "command line", std::vector<std::string>{R"(command=["/bin/sleep", "3"])"});
  EXPECT_EQ(spec.name, "sleep");
  EXPECT_EQ(spec.queue, "default");
  EXPECT_EQ(spec.min_workers(), 1);
  EXPECT_EQ(spec.grace_ms(), 30'000);
  EXPECT_EQ(spec.timeout_ms(), 0);
}

TEST(JobSpec, TheDefaultNameIsValid) {
  const auto name_of = [](const std::string& program) {
    return ReadJobSpec("command: ['" + program + "']", "job.yaml").name;
  };
  EXPECT_EQ(name_of("g++"), "g--");
  EXPECT_EQ(name_of("./my prog"), "my-prog");
  EXPECT_EQ(name_of("bin/"), "job");
  EXPECT_EQ(name_of("_run"), "job");
  EXPECT_EQ(name_of(std::string(70, 'x')), std::string(63, 'x'));
}

TEST(JobSpec, UnknownKeysSuggestTheNearest) {
  EXPECT_EQ(JobErrorWith("replica: 2"),
            "job.yaml:2:1: unknown key 'replica' at the top level: did you mean 'replicas'?");
  EXPECT_THAT(JobErrorWith("resources: {gpus: 2}"), HasSubstr("did you mean 'gpu'?"));
  EXPECT_THAT(JobErrorWith("gpu: 2"), HasSubstr("it belongs in section resources"));
}

TEST(JobSpec, InvalidValuesSayWhereAndWhat) {
  EXPECT_EQ(JobError("name: a"),
            "job.yaml: command must name a program, such as [renzan, train, kaggle.yaml]");
  EXPECT_THAT(JobError("command: []"), HasSubstr("job.yaml:1:10: command must name a program"));
  EXPECT_THAT(JobError("command: ['']"), HasSubstr("command must name a program"));
  EXPECT_THAT(JobError("command: renzan train"), HasSubstr("command must be a list"));
  EXPECT_THAT(JobError("command: [a, \"b\\0c\"]"), HasSubstr("NUL"));
  for (const char* replicas : {"0", "3..2", "-1", "two", "0..4", "1.5"})
    EXPECT_THAT(JobErrorWith(std::string("replicas: ") + replicas),
                HasSubstr("job.yaml:2:11: replicas must be a number of workers such as 4"))
        << replicas;
  EXPECT_THAT(JobErrorWith("replicas: [2, 8]"), HasSubstr("replicas must be text"));
  EXPECT_THAT(JobErrorWith("resources: {gpu: -1}"), HasSubstr("-1 is out of range: gpu"));
  EXPECT_THAT(JobErrorWith("resources: {gpu: half}"), HasSubstr("gpu must be a whole number"));
  EXPECT_THAT(JobErrorWith("resources: {cpu: 0}"), HasSubstr("0 is out of range: cpu"));
  EXPECT_THAT(JobErrorWith("resources: {memory: 4 gigs}"),
              HasSubstr("job.yaml:2:21: resources.memory must be an amount such as 512MiB"));
  EXPECT_THAT(JobErrorWith("resources: {other: {gpu: 1}}"), HasSubstr("a key of its own"));
  EXPECT_THAT(JobErrorWith("resources: {other: {nic: -1}}"), HasSubstr("has nic: -1"));
  EXPECT_THAT(JobErrorWith("resources: {other: {'n c': 1}}"), HasSubstr("has the name 'n c'"));
  for (const char* place : {"s3://", "s3://bucket", "s3://bucket/", "s3:///prefix", "/results"})
    EXPECT_THAT(JobErrorWith(std::string("upload_to: ") + place),
                HasSubstr("job.yaml:2:12: upload_to must be s3://bucket/prefix"))
        << place;
  EXPECT_EQ(JobErrorWith("upload_to: s3://bucket/prefix"), "no error");
  for (const char* key : {"grace", "retry_backoff", "timeout"})
    EXPECT_THAT(JobErrorWith(std::string(key) + ": 30"),
                HasSubstr(std::string(key) + " must be a duration such as 90s"));
  EXPECT_THAT(JobErrorWith("checkpoint: {max_interval: 0}"), HasSubstr("must be more than 0"));
  EXPECT_THAT(JobErrorWith("retries: -1"), HasSubstr("out of range"));
  EXPECT_THAT(JobErrorWith("priority: 10000000"), HasSubstr("out of range"));
  EXPECT_THAT(JobErrorWith("preemptible: maybe"), HasSubstr("must be true or false"));
}

TEST(JobSpec, RejectsInvalidNames) {
  EXPECT_THAT(JobErrorWith("name: a/b"), HasSubstr("name must be 1 to 63 letters"));
  EXPECT_THAT(JobErrorWith("queue: ''"), HasSubstr("queue must be 1 to 63 letters"));
  EXPECT_THAT(JobErrorWith("environment: {A-B: x}"), HasSubstr("has the name 'A-B'"));
  EXPECT_THAT(JobErrorWith("environment: {RANK: 3}"), HasSubstr("the job system sets itself"));
  EXPECT_THAT(JobErrorWith("environment: {A: \"\\0\"}"), HasSubstr("NUL"));
  EXPECT_THAT(JobErrorWith("constraints: {required: {'a b': c}}"),
              HasSubstr("has the label 'a b'"));
  EXPECT_THAT(JobErrorWith("constraints: {preferred: {a: \"c\\nd\"}}"), HasSubstr("one line"));
  EXPECT_THAT(JobErrorWith("constraints: {topology: 'a b'}"), HasSubstr("constraints.topology"));
  EXPECT_THAT(JobErrorWith("constraints: {topology_required: true}"), HasSubstr("needs a level"));
}

TEST(JobSpec, OverridesAreCheckedToo) {
  EXPECT_THAT(JobError("command: [a]", {"replicas=0"}),
              HasSubstr("--set replicas=0: replicas must"));
  const JobSpec spec = ReadJobSpec("command: [a]", "job.yaml",
                                   std::vector<std::string>{"environment.A=b", "resources.gpu=2"});
  EXPECT_EQ(spec.environment.at("A"), "b");
  EXPECT_EQ(spec.resources.gpu, 2);
}

}  // namespace
}  // namespace renzan::cluster::spec
