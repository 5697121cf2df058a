#include "renzan/cluster/spec/describe.h"

#include "renzan/cluster/spec/amounts.h"
#include "renzan/cluster/spec/names.h"

namespace renzan::cluster::spec {

void DescribeLabels(ConfigFields& fields, const char* key,
                    std::map<std::string, std::string>* labels, const char* doc) {
  fields.Field(key, labels, doc);
  for (const auto& [name, value] : *labels) {
    fields.Require(IsLabelKey(name), key,
                   fmt::format("has the label '{}': a label {}", name, kNameRule));
    fields.Require(IsOneLine(value), key,
                   fmt::format("has the label {}, whose value is not one line of text", name));
  }
}

void DescribeDuration(ConfigFields& fields, const char* key, std::string* value, const char* doc) {
  fields.Field(key, value, doc);
  fields.Require(TryParseMilliseconds(*value).has_value(), key, kDurationRule);
}

void DescribeCounts(ConfigFields& fields, const char* key, std::map<std::string, int64_t>* counts) {
  fields.Field(key, counts, "named countable resources: {nic: 1}");
  for (const auto& [name, count] : *counts) {
    // With a domain, as Kubernetes has them: example.com/nic.
    fields.Require(IsLabelKey(name), key,
                   fmt::format("has the name '{}': a resource's name {}", name, kNameRule));
    fields.Require(name != "cpu" && name != "memory" && name != "gpu", key,
                   fmt::format("has {}, which has a key of its own", name));
    fields.Require(count >= 0 && count <= kMaxCount, key,
                   fmt::format("has {}: {}, but a count is from 0 to {}", name, count, kMaxCount));
  }
}

}  // namespace renzan::cluster::spec
