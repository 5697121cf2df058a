#pragma once

// How to reach a cluster, and as whom. Read by kube_config.h.

#include <memory>
#include <string>

#include "renzan/cluster/kubernetes/api/credentials.h"

namespace renzan::cluster::kubernetes {

struct Access {
  std::string from;    // for messages: "/home/a/.kube/config, context dev"
  std::string server;  // https://HOST:PORT/PATH, without a final slash
  std::string default_namespace = "default";

  std::string ca_pem = {};           // trusted authorities; empty: the system's
  std::string tls_server_name = {};  // the name in the server's certificate; empty: HOST
  bool verify_server = true;
  std::string proxy_url = {};  // empty: none

  // Any of these, or none.
  std::string client_certificate_pem = {};
  std::string client_key_pem = {};
  std::string token = {};
  // What changes with time: its token and its certificate win over these.
  std::shared_ptr<Credentials> credentials = {};
};

}  // namespace renzan::cluster::kubernetes
