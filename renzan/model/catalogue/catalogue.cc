#include "renzan/model/catalogue/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

namespace renzan {

// One file each.
Graph AutoIntGraph(const ModelOptions& options);
Graph BstGraph(const ModelOptions& options);
Graph DcnGraph(const ModelOptions& options);
Graph DcnV2Graph(const ModelOptions& options);
Graph DeepFmGraph(const ModelOptions& options);
Graph DinGraph(const ModelOptions& options);
Graph DlrmDcnV2Graph(const ModelOptions& options);
Graph DlrmGraph(const ModelOptions& options);
Graph EsmmGraph(const ModelOptions& options);
Graph FinalMlpGraph(const ModelOptions& options);
Graph FmGraph(const ModelOptions& options);
Graph HstuGraph(const ModelOptions& options);
Graph LrGraph(const ModelOptions& options);
Graph MaskNetGraph(const ModelOptions& options);
Graph MmoeGraph(const ModelOptions& options);
Graph PleGraph(const ModelOptions& options);
Graph SasrecGraph(const ModelOptions& options);
Graph TwoTowerGraph(const ModelOptions& options);
Graph WideDeepGraph(const ModelOptions& options);
Graph XDeepFmGraph(const ModelOptions& options);
std::vector<ModelOutput> EsmmOutputs(const std::vector<std::string>& labels);

namespace {

// The keys of both DLRMs; configurations that were recorded with a dlrm have those of its cross
// network, too, which it does not have.
constexpr const char* kDlrmKeys =
    "bottom_mlp top_mlp cross_layers cross_rank dropout normalization";

// Labels may have names that blocks cannot have.
std::vector<ModelOutput> OutputPerLabel(const std::vector<std::string>& labels) {
  std::vector<ModelOutput> outputs;
  for (size_t i = 0; i < labels.size(); ++i) {
    std::string name = labels[i];
    if (!IsBlockName(name)) {
      name = fmt::format("label_{}", i);
      while (std::find(labels.begin(), labels.end(), name) != labels.end()) name += "_";
    }
    outputs.push_back({.name = name, .block = BlockOfOutput(name), .label = labels[i]});
  }
  return outputs;
}

constexpr CatalogueEntry kEntries[] = {
    {.name = "dlrm", .graph = DlrmGraph, .keys = kDlrmKeys},
    {.name = "dlrm_dcnv2", .graph = DlrmDcnV2Graph, .keys = kDlrmKeys},
    {.name = "lr", .graph = LrGraph, .has_embedding = false, .has_first_order = true},
    {.name = "fm", .graph = FmGraph, .has_first_order = true},
    {.name = "wide_deep",
     .graph = WideDeepGraph,
     .has_first_order = true,
     .keys = "top_mlp dropout normalization"},
    {.name = "deepfm",
     .graph = DeepFmGraph,
     .has_first_order = true,
     .keys = "top_mlp dropout normalization"},
    {.name = "xdeepfm",
     .graph = XDeepFmGraph,
     .has_first_order = true,
     .keys = "cin_layers top_mlp dropout normalization"},
    {.name = "dcn", .graph = DcnGraph, .keys = "top_mlp cross_layers dropout normalization"},
    {.name = "dcnv2",
     .graph = DcnV2Graph,
     .keys = "top_mlp cross_layers cross_rank cross_experts dropout normalization"},
    {.name = "autoint",
     .graph = AutoIntGraph,
     .has_first_order = true,
     .keys = "attention_layers attention_heads attention_dim top_mlp dropout normalization"},
    {.name = "masknet",
     .graph = MaskNetGraph,
     .keys = "mask_blocks mask_ratio mask_width top_mlp dropout normalization"},
    {.name = "din",
     .graph = DinGraph,
     .needs_sequences = true,
     .keys = "attention_mlp top_mlp activation dropout normalization"},
    {.name = "bst",
     .graph = BstGraph,
     .needs_sequences = true,
     .keys = "attention_heads top_mlp activation dropout normalization"},
    {.name = "sasrec",
     .graph = SasrecGraph,
     .needs_sequences = true,
     .takes_negatives = true,
     .compares_items = true,
     .keys = "attention_layers attention_heads top_mlp activation dropout normalization"},
    {.name = "hstu",
     .graph = HstuGraph,
     .needs_sequences = true,
     .takes_negatives = true,
     .compares_items = true,
     .keys = "attention_layers attention_heads top_mlp activation dropout normalization"},
    {.name = "finalmlp",
     .graph = FinalMlpGraph,
     .keys = "top_mlp second_mlp dropout normalization"},
    {.name = "two_tower",
     .graph = TwoTowerGraph,
     .compares_items = true,
     .keys = "item_features tower_mlp temperature popularity activation dropout normalization"},
    {.name = "mmoe",
     .graph = MmoeGraph,
     .outputs = OutputPerLabel,
     .keys = "experts expert_mlp top_mlp activation dropout normalization"},
    {.name = "ple",
     .graph = PleGraph,
     .outputs = OutputPerLabel,
     .keys = "expert_levels experts task_experts expert_mlp top_mlp activation dropout "
             "normalization"},
    {.name = "esmm",
     .graph = EsmmGraph,
     .outputs = EsmmOutputs,
     .keys = "top_mlp activation dropout normalization"},
};

}  // namespace

bool CatalogueEntry::Has(const std::string& key) const {
  return (" " + std::string(keys) + " ").find(" " + key + " ") != std::string::npos;
}

std::string BlockOfOutput(const std::string& output) { return "output_" + output; }

std::span<const CatalogueEntry> Catalogue() { return kEntries; }

std::string ModelsThatCompareItems() {
  std::vector<std::string> names;
  for (const CatalogueEntry& entry : kEntries)
    if (entry.compares_items) names.push_back(entry.name);
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

const CatalogueEntry* FindEntry(const std::string& name) {
  for (const CatalogueEntry& entry : kEntries)
    if (name == entry.name) return &entry;
  return nullptr;
}

}  // namespace renzan
