// renzan cluster kubernetes run

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "renzan/base/build_id.h"
#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/host.h"
#include "renzan/cli/cluster/verbs.h"
#include "renzan/cli/verbs.h"
#include "renzan/cluster/kubernetes/process/run.h"

namespace renzan {
namespace {

// A pod's name is not enough: its container may have restarted.
std::string Identity() {
  const char* pod = EnvironmentVariable("POD_NAME");
  return fmt::format("{}_{}_{:x}", pod == nullptr ? HostName() : pod, ::getpid(),
                     SystemClock().UnixMs());
}

void AddRunVerb(CLI::App& kubernetes) {
  auto options = std::make_shared<cluster::kubernetes::RunOptions>();
  CLI::App* verb = kubernetes.add_subcommand(
      "run", "Control a cluster, as one of several replicas; one of them leads");
  verb->add_option("--kubeconfig", options->access.path,
                   "Kubeconfig of the cluster; default: $KUBECONFIG, ~/.kube/config, or the pod's "
                   "service account");
  verb->add_option("--context", options->access.context, "Context in that file");
  verb->add_option("--namespace", options->lease.ns, "Namespace of the replicas' lease")
      ->capture_default_str();
  verb->add_option("--listen", options->listen,
                   "HOST:PORT for /healthz, /readyz and Prometheus's /metrics");
  verb->add_option("--metrics", options->metrics,
                   "HOST:PORT for /metrics instead, so that who may reach it can be limited");
  verb->add_flag("--rights-by-namespace", options->controller.rights_by_namespace,
                 "Hold jobs of namespaces in which this account may not run pods; see "
                 "deploy/kubernetes/controller-by-namespace");
  CLI::Option* const admission =
      verb->add_option("--admission", options->admission.listen,
                       "HOST:PORT for a validating webhook: POST /validate over HTTPS; see "
                       "deploy/kubernetes/admission");
  CLI::Option* const certificate =
      verb->add_option("--tls-certificate", options->admission.certificate,
                       "File with the webhook's certificate; it is read again when it changes");
  CLI::Option* const key = verb->add_option("--tls-key", options->admission.key,
                                            "File with the certificate's private key");
  CLI::Option* const secret = verb->add_option(
      "--admission-secret", options->admission.secret,
      "Secret of --namespace in which the replicas keep the webhook's certificate and renew it, "
      "instead of files; see deploy/kubernetes/admission-renewed");
  certificate->needs(admission)->needs(key);
  key->needs(admission)->needs(certificate);
  secret->needs(admission)->excludes(certificate);
  verb->add_option("--debug-port", options->debug_port,
                   "Port of 127.0.0.1 for /debug/cycles, a recording of the last scheduling cycles "
                   "that decided anything")
      ->check(CLI::Range(0, 65535));
  verb->add_option("--record", options->record,
                   "Also keep that recording in this file; the previous one becomes FILE.1")
      ->type_name("FILE");
  verb->add_option("--decision-log", options->decision_log,
                   "Append decisions to this file, one JSON object per line; -: stdout; default: "
                   "stderr")
      ->type_name("FILE");
  verb->add_option("--connections", options->connections, "Concurrent requests to the API server")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  verb->callback([options] {
    const auto& admission = options->admission;
    if (!admission.listen.empty() && admission.certificate.empty() && admission.secret.empty())
      Fail(ErrorCode::kUsage,
           "--admission needs a certificate: --tls-certificate and --tls-key, or "
           "--admission-secret");
    options->access.environment = EnvironmentVariable;
    options->access.what_else =
        "name one by --kubeconfig; in a cluster, deploy/kubernetes gives the controller what it "
        "needs";
    options->lease.identity = Identity();
    options->program = fmt::format("renzan {} (build {})", RENZAN_VERSION, BuildId());
    cluster::kubernetes::RunController(*options);
  });
}

}  // namespace

void AddClusterKubernetesVerb(CLI::App& cluster) {
  CLI::App* verb = cluster.add_subcommand("kubernetes", "Renzan on Kubernetes");
  verb->require_subcommand(1);
  AddRunVerb(*verb);
}

}  // namespace renzan
