#pragma once

// AdmissionReview: the question of an API server, and the answer.

#include <string>

#include "renzan/cluster/kubernetes/admission/cluster_view.h"
#include "renzan/cluster/kubernetes/process/http_server.h"

namespace renzan::cluster::kubernetes {

// `body`: a review of admission.k8s.io/v1 or v1beta1; the answer has the same version. What is no
// GangJob, and what is neither its creation nor an update, is allowed. A body that is no review is
// answered by 400 and one line. Does not throw.
ServerAnswer AnswerReview(const std::string& body, ClusterView& cluster, TimeMs now);

}  // namespace renzan::cluster::kubernetes
