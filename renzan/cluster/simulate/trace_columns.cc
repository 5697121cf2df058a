#include "renzan/cluster/simulate/trace_columns.h"

#include "renzan/base/duration.h"

namespace renzan::cluster::simulate {

void TraceColumns::Describe(ConfigFields& fields) {
  fields.Field("submitted", &submitted,
               "column: 2017-10-09 07:01:55 or 2017-10-09T07:01:55+01:00 (UTC if it does not say), "
               "or seconds");
  fields.Field("duration", &duration,
               "column: how long the job runs undisturbed, in seconds or as 01:30:00 or 1h30m");
  fields.Field("gpus", &gpus, "column: GPUs of the whole job");
  fields.Field("queue", &queue, "column; \"\": one queue for all");
  fields.Field("user", &user, "column; \"\": one user for each queue");
  fields.Field("name", &name, "column; \"\": none");
  fields.Field("duration_of", &duration_of, "by name, instead of a column: {bert: 2h, ncf: 10m}");
  fields.Require(duration_of.empty() || !name.empty(), "name",
                 "duration_of gives durations by name: say which column has the name");
  for (const auto& [name_of, text] : duration_of)
    if (const double seconds = ParseDuration(text).value_or(0);
        !(seconds > 0) || seconds > kLongestSeconds)
      fields.Require(
          false, "duration_of",
          fmt::format("{}: '{}' is not a duration such as 90s, 10m or 2h", name_of, text));
}

TraceColumns ReadTraceColumns(const std::string& path) {
  TraceColumns columns;
  ReadConfigFile(path, {}, [&](ConfigFields& fields) { columns.Describe(fields); });
  return columns;
}

}  // namespace renzan::cluster::simulate
