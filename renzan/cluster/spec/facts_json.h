#pragma once

// What has happened to a job as JSON: the status of a GangJob, and the document of a job in the
// daemon's database. Pure functions.

#include <nlohmann/json_fwd.hpp>

#include "renzan/cluster/core/engine/job_facts.h"

namespace renzan::cluster::spec {

// Placements and what users look for are at the top level, the other facts in "facts". Most are 0
// in most jobs and left out, because an API server's work grows with the number of fields.
nlohmann::json FactsToJson(const JobFacts& facts, const AttemptFacts& attempt);

// A fact that is missing, or of another type, keeps its value. False: the phase is unknown, and
// nothing has been read.
bool FactsFromJson(const nlohmann::json& object, JobFacts& facts, AttemptFacts& attempt);

nlohmann::json PlacementToJson(const NamedPlacement& placement);
NamedPlacement PlacementFromJson(const nlohmann::json& list);

}  // namespace renzan::cluster::spec
