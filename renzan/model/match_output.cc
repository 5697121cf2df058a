#include "renzan/model/match_output.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/model/blocks/block_error.h"
#include "renzan/model/model.h"

namespace renzan {

void CheckItemsStandAlone(const MatchOutput& match) {
  const auto fail = [&](const std::string& what) {
    RejectBlock(
        match.where, match.block,
        fmt::format(": its query and its item both depend on {}, so an item has another vector for "
                    "each query and items cannot be ranked: give it to one of the two sides alone",
                    what));
  };
  if (match.query.dense && match.item.dense) fail("the dense features");
  for (const std::string& feature : match.item.features)
    if (std::find(match.query.features.begin(), match.query.features.end(), feature) !=
        match.query.features.end())
      fail("the feature '" + UnescapeName(feature) + "'");
}

const Model::Node* Model::NodeOf(size_t output) const {
  const auto node = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& each) {
    return each.output == outputs_.at(output);
  });
  CHECK(node != nodes_.end());
  return &*node;
}

MatchSide Model::SideOf(size_t value) const {
  std::vector<char> needed(values_.size());
  needed[value] = true;
  for (size_t n = nodes_.size(); n-- > 0;)
    if (needed[nodes_[n].output])
      for (const size_t input : nodes_[n].inputs) needed[input] = true;
  const auto has = [&](const std::string& input) {
    for (size_t v = 0; v < values_.size(); ++v)
      if (needed[v] && values_[v].name == input) return true;
    return false;
  };
  MatchSide side{.dense = options_.num_dense > 0 && has(kDenseInput), .features = {}};
  for (const TableInput& table : options_.tables)
    if (has(kEmbeddingsInput) || has(EmbeddingsOf(table.name))) side.features.push_back(table.name);
  for (const SequenceInput& sequence : options_.sequences)
    if (has(EmbeddingsOf(sequence.name))) side.features.push_back(sequence.name);
  return side;
}

std::optional<MatchOutput> Model::MatchOf(size_t output) const {
  const Node& node = *NodeOf(output);
  if (!node.block->IsMatch()) return std::nullopt;
  return MatchOutput{.block = values_[node.output].name,
                     .width = ColumnsOf(values_[node.inputs[0]].shape),
                     .query = SideOf(node.inputs[0]),
                     .item = SideOf(node.inputs[1]),
                     .where = values_[node.output].where};
}

void Model::GetMatch(const Workspace& workspace, int64_t n, const MatchVectors& to) const {
  const Workspace::Matrices& matrices =
      workspace.nodes[static_cast<size_t>(NodeOf(to.output) - nodes_.data())];
  const auto copy = [&](const BlockedMatrix& from, float* values) {
    CHECK(from.columns() == to.width);
    for (int64_t i = 0; i < n && values != nullptr; ++i)
      from.GetRow(i, 0, values + i * to.width, to.width);
  };
  copy(*matrices.inputs[0], to.queries);
  copy(*matrices.inputs[1], to.items);
}

}  // namespace renzan
