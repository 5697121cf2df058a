#include "renzan/cluster/spec/retry_policy.h"

namespace renzan::cluster::spec {

RetryPolicy RetryPolicyOf(const JobSpec& spec) {
  return {.retries = spec.retries,
          .backoff_ms = spec.retry_backoff_ms(),
          .timeout_ms = spec.timeout_ms(),
          .saves_on_stop = spec.checkpoint.on_stop};
}

}  // namespace renzan::cluster::spec
