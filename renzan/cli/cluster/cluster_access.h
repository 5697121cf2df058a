#pragma once

// Common to the verbs that work on any cluster: which one, and how it is reached.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "renzan/cluster/backend/backend.h"
#include "renzan/cluster/backend/choice.h"

namespace CLI {
class App;
}

namespace renzan {

using cluster::Backend;
using cluster::ClusterFlags;
using cluster::Document;

// --cluster, --namespace and --socket.
void AddClusterChoice(CLI::App& verb, ClusterFlags& flags);

// The options of a verb that works only on this machine, where --cluster may only say "local".
void AddThisMachineOptions(CLI::App& verb, ClusterFlags& flags);
// Throws Error kUsage if another cluster is chosen. `verb`: "cluster up", for messages.
void RequireThisMachine(const ClusterFlags& flags, const std::string& verb);

// The chosen cluster; see ChooseCluster(). Throws Error for wrong flags and files; does not contact
// the cluster yet.
std::unique_ptr<Backend> BackendOf(const ClusterFlags& flags);

// Prints a document, indented, to stdout.
void PrintDocument(const Document& document);

// Called at the end of a verb that has printed the readable jobs: fails with kData if some could
// not be read, as ls fails if one of several files is missing.
void FailForUnreadable(const Document& answer);

}  // namespace renzan
