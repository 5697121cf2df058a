#include "renzan/cluster/kubernetes/api/pod_logs.h"

#include <fmt/format.h>

#include "renzan/cluster/kubernetes/api/answer.h"
#include "renzan/cluster/kubernetes/api/paths.h"
#include "renzan/cluster/kubernetes/api/session.h"

namespace renzan::cluster::kubernetes {
namespace {

constexpr double kLogConnectSeconds = 5;
// A log's size is not known in advance.
constexpr double kNoLimit = 0;
constexpr size_t kMaxErrorBytes = 1 << 20;

class HttpPodLogs : public PodLogs {
 public:
  explicit HttpPodLogs(const Access& access)
      : session_(access, kLogConnectSeconds, kMaxErrorBytes, {}) {}

  void Read(const LogRequest& log,
            const std::function<void(std::string_view piece)>& take) override {
    ApiRequest request{
        .method = "GET",
        .target = fmt::format("{}?container={}&follow={}",
                              ObjectPath({"", "v1", "pods", "Pod"}, log.ns, log.pod, "log"),
                              EscapeUrl(log.container), log.follow),
        .timeout_seconds = kNoLimit,
        .take = take};
    if (log.tail_lines) request.target += fmt::format("&tailLines={}", *log.tail_lines);
    HttpAnswer answer = session_.Send(request);
    if (answer.status == 401 && session_.RenewCredentials()) answer = session_.Send(request);
    if (answer.status < 200 || answer.status >= 300)
      FailAsAnswered({session_.Describe(request), session_.access().from, /*is_write=*/false},
                     answer.status, answer.body);
  }

 private:
  Session session_;
};

}  // namespace

std::unique_ptr<PodLogs> MakeHttpPodLogs(const Access& access) {
  return std::make_unique<HttpPodLogs>(access);
}

}  // namespace renzan::cluster::kubernetes
