#include "renzan/train/model_io.h"

#include <algorithm>
#include <functional>

#include "renzan/base/file.h"
#include "renzan/train/gather.h"

namespace renzan {
namespace {

// Calls visit(key, shape, values) for every dense parameter and each of its optimizer states.
using Visit = std::function<void(const std::string& key, const std::vector<int64_t>& shape,
                                 std::span<float> values)>;

void VisitDense(HybridModel& model, bool with_optimizer, const Visit& visit) {
  for (const Parameter& parameter : model.model().layout().parameters()) {
    const size_t offset = static_cast<size_t>(parameter.offset);
    const size_t size = static_cast<size_t>(parameter.size);
    visit(parameter.name, parameter.shape, model.parameters().span().subspan(offset, size));
    if (!with_optimizer) continue;
    for (DenseOptimizer::State& state : model.dense_optimizer().states())
      visit(parameter.name + "/" + state.name, parameter.shape,
            state.values.span().subspan(offset, size));
  }
}

void VisitTable(EmbeddingTable& table, const std::string& state_name, bool with_optimizer,
                const Visit& visit) {
  const std::string key = "embedding." + EscapeName(table.spec.name) + ".weight";
  const int64_t rows = table.spec.num_embeddings, dim = table.spec.embedding_dim;
  visit(key, {rows, dim}, table.weights.span());
  if (!with_optimizer || state_name.empty()) return;
  const bool per_row = state_name == StateName(SparseOptimizerType::kRowWiseAdagrad);
  visit(key + "/" + state_name, per_row ? std::vector{rows} : std::vector{rows, dim},
        table.state.span());
}

}  // namespace

std::string SaveModel(HybridModel& model, Communicator& comm, const std::string& directory,
                      int64_t step, const std::string& config_yaml) {
  std::unique_ptr<ModelWriter> writer;
  if (comm.rank() == 0) writer = std::make_unique<ModelWriter>(directory);
  comm.Barrier();
  const std::string staging = ModelWriter::StagingPath(directory);

  std::string mine;  // this worker's files, one JSON text per line
  std::vector<NamedTensor> tensors;
  const Visit collect = [&](const std::string& key, const std::vector<int64_t>& shape,
                            std::span<float> values) {
    tensors.push_back({key, shape, values});
  };
  const auto write = [&](const std::string& name) {
    mine += WriteModelFile(staging, name, tensors).ToJson() + "\n";
    tensors.clear();
  };
  if (comm.rank() == 0) {
    VisitDense(model, true, collect);
    write("dense.safetensors");
  }
  const std::string state_name = model.embeddings().state_name();
  for (EmbeddingTable& table : model.embeddings().tables()) {
    VisitTable(table, state_name, true, collect);
    write("table." + EscapeName(table.spec.name) + ".safetensors");
  }

  const std::vector<std::string> everyone = GatherStrings(comm, mine);
  std::string sha256;
  if (writer) {
    std::vector<ModelFile> files;
    for (const std::string& lines : everyone) {
      for (size_t begin = 0, end; begin < lines.size(); begin = end + 1) {
        end = lines.find('\n', begin);
        files.push_back(ModelFile::FromJson(std::string_view(lines).substr(begin, end - begin)));
      }
    }
    std::sort(files.begin(), files.end(),
              [](const ModelFile& a, const ModelFile& b) { return a.name < b.name; });
    sha256 = writer->Commit(std::move(files), step, config_yaml);
  }
  return BroadcastString(comm, sha256);
}

void LoadModel(ModelReader& reader, bool with_optimizer, HybridModel* model) {
  const Visit load = [&](const std::string& key, const std::vector<int64_t>& shape,
                         std::span<float> values) {
    const std::span<const float> saved = reader.Tensor(key, shape);
    std::copy(saved.begin(), saved.end(), values.begin());
  };
  VisitDense(*model, with_optimizer, load);
  const std::string state_name = model->embeddings().state_name();
  for (EmbeddingTable& table : model->embeddings().tables())
    VisitTable(table, state_name, with_optimizer, load);
}

}  // namespace renzan
