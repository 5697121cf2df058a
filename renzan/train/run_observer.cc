#include "renzan/train/run_observer.h"

#include "renzan/base/log.h"

namespace renzan {

struct RunObserver::State {
  Options options;
};

RunObserver::RunObserver(Options options) : state_(new State{std::move(options)}) {}
RunObserver::~RunObserver() = default;

void RunObserver::OnStart(int64_t steps) { LogInfo("{} steps", steps); }
void RunObserver::OnReport(const StepReport& r) {
  LogInfo("step {}/{}  {:.0f} samples/s  loss {:.5f}  AUC {:.5f}", r.step, r.steps,
          r.samples_per_second, r.window.LogLoss(), r.window.Auc());
}
void RunObserver::OnEvaluation(int64_t step, const BinaryMetrics& m) {
  LogInfo("eval at {}: AUC {:.5f} loss {:.5f}", step, m.Auc(), m.LogLoss());
}
void RunObserver::OnAdvice(const std::string& advice) { LogWarning("{}", advice); }
void RunObserver::OnDone(const TrainResult&, const std::string& model_sha256) {
  LogInfo("model sha256 {}", model_sha256);
}

}  // namespace renzan
