#pragma once

// Requests to the API server that do not depend on each other, at the same time: a gang's pods, the
// states of many jobs.

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "renzan/cluster/kubernetes/api/api.h"

namespace renzan::cluster::kubernetes {

// Must not throw: what fails is the request's own to remember.
using Request = std::function<void(Api&)>;

class Requests {
 public:
  virtual ~Requests() = default;
  // Returns when all of them have ended.
  virtual void Run(std::vector<Request> requests) = 0;
};

// Something to ask of the server, and how that went.
struct Task {
  std::optional<ApiError> error = {};
};

// `run(api, task)` for all tasks, each of which is a Task, at the same time. Returns how many have
// failed.
template <typename T, typename Run>
int64_t RunAll(Requests& requests, std::vector<T>& tasks, const Run& run) {
  std::vector<Request> all;
  for (T& task : tasks)
    all.push_back([&run, &task](Api& api) {
      try {
        run(api, task);
      } catch (const ApiError& error) {
        task.error = error;
      }
    });
  requests.Run(std::move(all));
  return std::count_if(tasks.begin(), tasks.end(),
                       [](const T& task) { return task.error.has_value(); });
}

// One request. What failed, if it has.
template <typename Run>
std::optional<ApiError> Ask(Requests& requests, const Run& run) {
  std::vector<Task> one(1);
  RunAll(requests, one, [&](Api& api, Task&) { run(api); });
  return one[0].error;
}

// One after the other. `api` outlives it.
std::unique_ptr<Requests> MakeSequentialRequests(Api& api);
// On so many threads, each with a connection of its own.
std::unique_ptr<Requests> MakeParallelRequests(const ApiFactory& make_api, int threads,
                                               std::stop_token stop);

}  // namespace renzan::cluster::kubernetes
