#pragma once

// AdmissionReview: an API server's question, and the answer.

#include <string>

#include "renzan/cluster/kubernetes/admission/cluster_view.h"
#include "renzan/cluster/kubernetes/process/path_server.h"

namespace renzan::cluster::kubernetes {

// `body`: a review of admission.k8s.io/v1 or v1beta1; the answer has the same version. Objects of
// other kinds, and operations other than create and update, are allowed. A body that is not a
// review is answered with 400 and one line. Does not throw.
ServerAnswer AnswerReview(const std::string& body, ClusterView& cluster, TimeMs now);

}  // namespace renzan::cluster::kubernetes
