#pragma once

// Makes a GangJob from a job specification written for this machine, an image, and the parts of a
// pod that a specification cannot express. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::kubernetes {

struct ManifestSource {
  std::string name;        // of the specification, for messages: "job.yaml"
  bool names_job = false;  // whether the specification names the job; false: the name is a default
  // {"metadata": labels and annotations, "spec": a pod's}; null: none. Its first container, or the
  // one named "main", runs the command.
  const nlohmann::json& pod_template;
  std::string pod_template_name = {};
  std::string image = {};  // empty: the template's
};

// Without a namespace. A job whose name is a default gets metadata.generateName instead, so that it
// can be submitted again. Throws Error kConfig for what has no counterpart on Kubernetes, for names
// that are invalid there, and where the template contradicts the specification.
nlohmann::json GangJobManifest(const spec::JobSpec& spec, const ManifestSource& source);

// Which container of a pod runs the job's program. Null if there is none.
const nlohmann::json* MainContainer(const nlohmann::json& pod_spec);

}  // namespace renzan::cluster::kubernetes
