#pragma once

// Independent requests to the API server, made concurrently: a gang's pods, the states of many
// jobs.

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "renzan/cluster/kubernetes/api/api.h"

namespace renzan::cluster::kubernetes {

// Must not throw: a request itself records its failure.
using Request = std::function<void(Api&)>;

class Requests {
 public:
  virtual ~Requests() = default;
  // Returns when all of them have ended.
  virtual void Run(std::vector<Request> requests) = 0;
};

// A request to the server, and its outcome.
struct Task {
  std::optional<ApiError> error = {};
};

// Calls `run(api, task)` concurrently for all tasks, each of which is a Task. Returns how many have
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

// Makes one request. Returns its error, if any.
template <typename Run>
std::optional<ApiError> Ask(Requests& requests, const Run& run) {
  std::vector<Task> one(1);
  RunAll(requests, one, [&](Api& api, Task&) { run(api); });
  return one[0].error;
}

// Makes one request after the other. `api` must outlive it.
std::unique_ptr<Requests> MakeSequentialRequests(Api& api);
// Makes requests on several threads, each with a connection of its own.
std::unique_ptr<Requests> MakeParallelRequests(const ApiFactory& make_api, int threads,
                                               std::stop_token stop);

}  // namespace renzan::cluster::kubernetes
