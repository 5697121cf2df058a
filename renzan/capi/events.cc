#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/host.h"
#include "renzan/capi/guard.h"
#include "renzan/observe/event_file.h"

using namespace renzan;
using namespace renzan::capi;

struct renzan_events {
  EventFile file;
};

renzan_status renzan_events_create(const char* directory, int64_t next_step,
                                   renzan_events** events) {
  return Guard([&] {
    NeedsArgument(directory, "directory");
    NeedsArgument(events, "events");
    if (next_step < 0) Fail(ErrorCode::kUsage, "step {} is negative", next_step);
    CreateDirectories(directory);
    *events =
        new renzan_events{EventFile(directory, SystemClock().UnixSeconds(), HostName(), next_step)};
  });
}

void renzan_events_destroy(renzan_events* events) { delete events; }

const char* renzan_events_path(const renzan_events* events) {
  return events == nullptr ? "" : events->file.path().c_str();
}

renzan_status renzan_events_add(renzan_events* events, int64_t step, const char* const* tags,
                                const double* values, size_t count) {
  return Guard([&] {
    NeedsArgument(events, "events");
    if (step < 0) Fail(ErrorCode::kUsage, "step {} is negative", step);
    if (count > 0) NeedsArgument(tags, "tags");
    if (count > 0) NeedsArgument(values, "values");
    ScalarRecord record{.step = step, .unix_seconds = SystemClock().UnixSeconds()};
    for (size_t i = 0; i < count; ++i) {
      NeedsArgument(tags[i], "tags[i]");
      record.scalars.push_back({tags[i], values[i]});
    }
    events->file.Add(record);
  });
}
