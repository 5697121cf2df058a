#include "renzan/cluster/kubernetes/controller/requests.h"

#include <nlohmann/json.hpp>

#include "renzan/base/thread_pool.h"

namespace renzan::cluster::kubernetes {
namespace {

class SequentialRequests : public Requests {
 public:
  explicit SequentialRequests(Api& api) : api_(api) {}
  void Run(std::vector<Request> requests) override {
    for (const Request& request : requests) request(api_);
  }

 private:
  Api& api_;
};

class ParallelRequests : public Requests {
 public:
  ParallelRequests(const ApiFactory& make_api, int threads, const std::stop_token& stop)
      : threads_(threads) {
    for (int thread = 0; thread < threads; ++thread) apis_.push_back(make_api(stop));
  }

  void Run(std::vector<Request> requests) override {
    if (requests.size() == 1)
      requests[0](*apis_[0]);  // avoids waking another thread
    else
      threads_.ParallelTasks(requests.size(),
                             [&](int thread, size_t at) { requests[at](*apis_[thread]); });
  }

 private:
  ThreadPool threads_;
  std::vector<std::unique_ptr<Api>> apis_;
};

}  // namespace

std::unique_ptr<Requests> MakeSequentialRequests(Api& api) {
  return std::make_unique<SequentialRequests>(api);
}

std::unique_ptr<Requests> MakeParallelRequests(const ApiFactory& make_api, int threads,
                                               std::stop_token stop) {
  return std::make_unique<ParallelRequests>(make_api, threads, stop);
}

}  // namespace renzan::cluster::kubernetes
