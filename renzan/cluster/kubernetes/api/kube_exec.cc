#include "renzan/cluster/kubernetes/api/kube_exec.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/api/api.h"
#include "renzan/cluster/kubernetes/api/base64.h"

namespace renzan::cluster::kubernetes {
namespace {

// Where clusters[].cluster.extensions has what the program is to know about the cluster.
constexpr const char* kExtension = "client.authentication.k8s.io/exec";

std::string ClusterInfo(const Section& cluster, const Access& access) {
  Json info = {{"server", access.server}};
  const auto put = [&info](const char* key, const std::string& text) {
    if (!text.empty()) info[key] = text;
  };
  put("tls-server-name", access.tls_server_name);
  put("certificate-authority-data", EncodeBase64(access.ca_pem));
  put("proxy-url", access.proxy_url);
  if (!access.verify_server) info["insecure-skip-tls-verify"] = true;
  if (const auto extension = cluster.Find("extensions", kExtension, "extension"))
    info["config"] = extension->Json();
  return info.dump();
}

std::string ReadApiVersion(const Section& exec) {
  constexpr const char* kNext =
      "have the configuration written again by the current version of the cloud's tool (`aws eks "
      "update-kubeconfig`), or set client.authentication.k8s.io/v1 or v1beta1, whichever the "
      "command speaks";
  std::string version = exec.Required("apiVersion", kNext);
  if (std::find(std::begin(kExecApiVersions), std::end(kExecApiVersions), version) ==
      std::end(kExecApiVersions))
    Fail(ErrorCode::kConfig, "{}: '{}' is not supported: {}", exec.Where("apiVersion"), version,
         kNext);
  return version;
}

InteractiveMode ReadInteractiveMode(const Section& exec) {
  const std::string mode = exec.Text("interactiveMode");
  if (mode == "Never") return InteractiveMode::kNever;
  if (mode == "IfAvailable" || mode.empty()) return InteractiveMode::kIfAvailable;
  if (mode == "Always") return InteractiveMode::kAlways;
  Fail(ErrorCode::kConfig, "{}: '{}' is none of Never, IfAvailable and Always: correct the file",
       exec.Where("interactiveMode"), mode);
}

}  // namespace

ExecConfig ReadExec(const Section& exec, const Section& cluster, const Access& access) {
  std::string command = exec.Required("command", "name the program that provides credentials");
  if (command.find('/') != std::string::npos) command = ResolvePath(exec, command);
  ExecConfig config;
  config.where = exec.Where();
  config.argv = exec.Texts("args");
  config.argv.insert(config.argv.begin(), std::move(command));
  config.api_version = ReadApiVersion(exec);
  config.interactive = ReadInteractiveMode(exec);
  config.install_hint = exec.Text("installHint");
  for (const auto& [name, value] : exec.NamedTexts("env"))
    config.environment.push_back(name + "=" + value);
  if (exec.Flag("provideClusterInfo")) config.cluster = ClusterInfo(cluster, access);
  return config;
}

}  // namespace renzan::cluster::kubernetes
