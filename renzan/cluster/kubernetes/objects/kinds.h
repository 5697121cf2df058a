#pragma once

// The kinds of objects that the controller reads and writes, and the names that it gives them.

#include "renzan/cluster/kubernetes/api/api.h"

namespace renzan::cluster::kubernetes {

inline constexpr const char* kGroup = "renzan.dev";
// The schedulerName in the spec of pods that only the controller binds.
inline constexpr const char* kSchedulerName = "renzan";
// Labels of a pod.
inline constexpr const char* kJobNameLabel = "renzan.dev/job";
inline constexpr const char* kAttemptLabel = "renzan.dev/attempt";
inline constexpr const char* kRankLabel = "renzan.dev/rank";
// Taints of a node (NoSchedule). The first: an operator drains it, so gangs that save their work
// leave and others run to their end. The second: it is idle and its machine is being returned; the
// controller sets and removes it.
inline constexpr const char* kDrainTaint = "renzan.dev/drain";
inline constexpr const char* kReturningTaint = "renzan.dev/returning";
// Annotation of a pod: when its program was last asked to save its work.
inline constexpr const char* kCheckpointRequestAnnotation = "renzan.dev/checkpoint-request";
// Annotations of a GangJob with which its user requests something, whenever the text changes.
inline constexpr const char* kRequestCheckpoint = "renzan.dev/request-checkpoint";
inline constexpr const char* kRequestPreempt = "renzan.dev/request-preempt";

// The API's names of resources; other names are kept as they are.
inline constexpr const char* kGpuResource = "nvidia.com/gpu";

inline const Kind& Pods() {
  static const Kind kind{"", "v1", "pods", "Pod"};
  return kind;
}
inline const Kind& Nodes() {
  static const Kind kind{"", "v1", "nodes", "Node"};
  return kind;
}
inline const Kind& GangJobs() {
  static const Kind kind{kGroup, "v1alpha1", "gangjobs", "GangJob"};
  return kind;
}
inline const Kind& Queues() {
  static const Kind kind{kGroup, "v1alpha1", "queues", "Queue"};
  return kind;
}
inline const Kind& NodePools() {
  static const Kind kind{kGroup, "v1alpha1", "nodepools", "NodePool"};
  return kind;
}
inline const Kind& ClusterPolicies() {
  static const Kind kind{kGroup, "v1alpha1", "clusterpolicies", "ClusterPolicy"};
  return kind;
}
inline const Kind& Services() {
  static const Kind kind{"", "v1", "services", "Service"};
  return kind;
}
inline const Kind& PersistentVolumeClaims() {
  static const Kind kind{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"};
  return kind;
}
inline const Kind& Events() {
  static const Kind kind{"", "v1", "events", "Event"};
  return kind;
}
inline const Kind& Leases() {
  static const Kind kind{"coordination.k8s.io", "v1", "leases", "Lease"};
  return kind;
}
// Asked, never kept.
inline const Kind& OwnAccessReviews() {
  static const Kind kind{"authorization.k8s.io", "v1", "selfsubjectaccessreviews",
                         "SelfSubjectAccessReview"};
  return kind;
}
inline const Kind& Secrets() {
  static const Kind kind{"", "v1", "secrets", "Secret"};
  return kind;
}
inline const Kind& ValidatingWebhooks() {
  static const Kind kind{"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
                         "ValidatingWebhookConfiguration"};
  return kind;
}

}  // namespace renzan::cluster::kubernetes
