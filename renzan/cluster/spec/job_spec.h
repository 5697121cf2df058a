#pragma once

// The job specification: YAML with a strict schema, or a command line with defaults.
//
//   name: kaggle
//   queue: research
//   replicas: 4            # or 2..8 when elastic
//   resources: {cpu: 8, memory: 32GiB, gpu: 8}
//   checkpoint: {on_stop: true}
//   command: [renzan, train, kaggle.yaml]

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/cluster/spec/amounts.h"

namespace renzan::cluster::spec {

inline constexpr const char* kExportAll = "ALL";
inline constexpr const char* kExportNone = "NONE";
inline constexpr int kMaxPriority = 1'000'000;  // and its negative

struct JobSpec {
  std::string name;  // default: the program's name
  std::string queue = "default";
  int priority = 0;
  std::string replicas = "1";  // "4", or "2..8": elastic
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
  // Which of the submitter's variables it gets, too: "ALL", "NONE" or "A,B". Empty: ALL; on
  // Kubernetes NONE.
  std::string exported;
  std::string working_directory;  // default: where it was submitted
  // A directory, relative to the working directory, that is copied to the job's directory when it
  // ends. Empty: only $RENZAN_RUN_DIR is kept.
  std::string artifacts;
  // "s3://bucket/prefix": where its artifacts, its run directory and the workers' output are copied
  // when it ends (on Kubernetes by each worker). Empty: nowhere.
  std::string upload_to;

  struct PerWorker {
    double cpu = 1;
    std::string memory = "0";  // "512MiB", "32GiB"
    int64_t gpu = 0;
    std::map<std::string, int64_t> other;  // named countable resources
    void Describe(ConfigFields& fields);
  } resources;

  struct Constraints {
    std::map<std::string, std::string> required, preferred;
    std::string topology;  // a level: all workers in one of its domains
    bool topology_required = false;
    std::vector<std::string> exclude_nodes;  // names: no worker runs there
    void Describe(ConfigFields& fields);
  } constraints;

  struct Checkpoint {
    bool on_stop = false;     // obeys the launch contract: SIGTERM, checkpoint, exit 75
    bool on_request = false;  // SIGUSR1: checkpoint and continue
    std::string max_interval = "10m";
    // RENZAN_CHECKPOINT_DIR: an absolute path or "s3://bucket/prefix". Empty: in the job's
    // directory.
    std::string directory;
    bool in_store() const { return directory.starts_with("s3://"); }
    void Describe(ConfigFields& fields);
  } checkpoint;

  std::string grace = "30s";
  int retries = 0;                   // attempts after a failure; stops on request do not count
  std::string retry_backoff = "1s";  // doubles each time
  std::string timeout = "0s";        // total running time of all attempts; 0: none
  bool preemptible = true;
  bool grand_challenge = false;

  void Describe(ConfigFields& fields);

  // Parsed values; only after a successful ReadJobSpec().
  int min_workers() const;
  int max_workers() const;
  int64_t grace_ms() const;
  int64_t retry_backoff_ms() const;
  int64_t timeout_ms() const;  // 0: none
  int64_t max_checkpoint_interval_ms() const;
};

// The launch contract sets it, so jobs may not.
bool IsContractVariable(const std::string& name);
// "A,B" to A and B.
std::vector<std::string> ExportedNames(const std::string& names);

// `name` is the file name used in messages. Fills in the job's name if it is empty. Throws Error
// kConfig (file, line, column, nearest name).
JobSpec ReadJobSpec(std::string_view yaml, const std::string& name,
                    std::span<const std::string> overrides = {});
// As YAML that reads back to the same values, with all defaults; `with_docs`: with a comment for
// each key.
std::string PrintJobSpec(JobSpec spec, bool with_docs = false);

}  // namespace renzan::cluster::spec
