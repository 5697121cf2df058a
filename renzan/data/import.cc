#include "renzan/data/import.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"
#include "renzan/data/dataset/dataset_staging.h"
#include "renzan/data/dataset/dataset_writer.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/dense_spread.h"
#include "renzan/data/dense_transform.h"
#include "renzan/data/held_out_rows.h"
#include "renzan/data/input_rows.h"
#include "renzan/data/negative_sampler.h"
#include "renzan/data/row_ids.h"
#include "renzan/data/row_source.h"
#include "renzan/data/row_split.h"
#include "renzan/data/skipped_rows.h"
#include "renzan/data/split_directory.h"
#include "renzan/data/synth/teacher_report.h"
#include "renzan/data/vocabularies_from.h"
#include "renzan/data/vocabulary.h"
#include "renzan/data/vocabulary_options.h"

namespace renzan {
namespace {

constexpr int64_t kRowsBetweenReports = 4096;
// How many skipped bad rows are reported individually.
constexpr int64_t kBadRowsShown = 5;
// How many labels that no rule names are shown.
constexpr size_t kLabelsShown = 5;
// How many times too large or too small the mean weight of training data may be without a warning.
constexpr double kUsualWeight = 2;
// From this share of bad rows on, not the rows are wrong, but the schema or the file.
constexpr double kManyBadRows = 0.1;
// From this share of lookups that read the row for rare values on, a feature of training data
// cannot learn. Fewer lookups do not show it.
constexpr double kNearlyAllRare = 0.95;
constexpr int64_t kEnoughLookups = 100;

NegativeSampler SamplerOf(const ImportOptions& options) {
  const double share = options.keep_negatives.value_or(1);
  if (!(share > 0 && share <= 1))
    Fail(ErrorCode::kUsage,
         "--keep-negatives {}: must be the share of rows with label 0 to keep, greater than 0 and "
         "at most 1",
         share);
  return NegativeSampler(share, options.seed.value_or(0));
}

// The share of the negatives that earlier programs and this import keep. Rounded, so that the same
// share, reached in other steps, is the same number.
double NegativesKept(const DatasetSchema& schema, double kept_here) {
  if (!schema.has_labels()) return 1;
  return std::stod(fmt::format("{:.12g}", schema.negatives_kept * kept_here));
}

std::string ReasonOf(const BadRow& bad) {
  if (bad.column == 0) return bad.reason;
  return fmt::format("column {} ({}): {}", bad.column, bad.name, bad.reason);
}

class Importer {
 public:
  Importer(const ImportOptions& options, RowSource& source)
      : options_(options), negatives_(SamplerOf(options)), source_(source) {
    if (!options.split.empty()) split_.emplace(options.split, options.seed.value_or(0));
    source_.Begin();
    DatasetSchema schema = source_.schema();
    if (options.keep_negatives && !schema.further_labels.empty())
      Fail(ErrorCode::kUsage,
           "--keep-negatives: the data have several labels, and scores can be corrected only with "
           "one");
    if (options.keep_negatives && !schema.has_labels())
      Fail(ErrorCode::kUsage,
           "--keep-negatives: the data have no labels, so that no row is a negative");
    if (options.keep_negatives && schema.first_label_is_number())
      Fail(ErrorCode::kUsage,
           "--keep-negatives: the label '{}' is a number, so that no row is a negative",
           Escape(schema.label));
    if (split_ && !split_->column().empty()) split_->SetFormat(source_.SplitBy(split_->column()));
    const double negatives_kept = NegativesKept(schema, 1);
    schema.negatives_kept = NegativesKept(schema, options.keep_negatives.value_or(1));
    std::vector<Vocabulary> vocabularies = options.vocabulary_from.empty()
                                               ? VocabulariesFromOptions(options, schema)
                                               : TakeVocabularies(options, &schema);
    if (options.is_training_data())
      TrainUnseenOfOptions(options, schema, source_.unseen_shares(), &vocabularies);
    ids_.emplace(schema, std::move(vocabularies));
    SetTransforms(schema);
    for (size_t f = 0; f < ids_->size(); ++f) {
      const Vocabulary& vocabulary = ids_->VocabularyOf(f);
      schema.categorical[f].num_embeddings =
          vocabulary.provisional() ? 1 : vocabulary.num_embeddings();
    }
    provisional_ = ids_->provisional();
    const DatasetWriterOptions files{
        .shard_rows = options.shard_rows,
        .created_by =
            "import --format " + (options.made_of.empty() ? options.format : options.made_of),
        .map_ids_at_end = provisional_,
        .dense_at_end = fits_.empty() ? std::vector<size_t>() : unscaled_,
        .keys = source_.keys(),
        .stop = options.stop};
    writer_.emplace(options.training_output(), schema, files);
    if (split_) {
      schema.negatives_kept = negatives_kept;
      test_.emplace(options.output + "/test", schema, files, ids_->vocabularies());
    }
    skipped_.emplace(writer_->PathOfFile(kSkippedRowsName));
    input_rows_.emplace(writer_->PathOfFile(kInputRowsName));
  }

  ImportSummary Run() {
    ReadRows();
    if (progress_.rows == 0 && progress_.dropped_rows > 0)
      Fail(ErrorCode::kData,
           "{}: --keep-negatives kept 0 of {} with label 0, and no {}row has another",
           source_.names(), Counted(progress_.dropped_rows, "valid row"),
           split_ ? "training " : "");
    if (split_ && (progress_.rows == 0) != (progress_.test_rows == 0))
      Fail(ErrorCode::kData, "{}: --split {} puts all of {} into the {} set", source_.names(),
           split_->text(), Counted(valid_rows(), "valid row"),
           progress_.rows == 0 ? "test" : "training");
    if (progress_.rows == 0 && progress_.bad_rows == 0)
      Fail(ErrorCode::kData, "no rows in {}", source_.names());
    if (progress_.rows == 0)
      Fail(ErrorCode::kData, "no valid rows in {} ({}; the first: {})", source_.names(),
           Counted(progress_.bad_rows, "bad row"), first_bad_row_);
    Report();
    if (progress_.bad_share() >= kManyBadRows)
      LogWarning("{:.3g} % of the rows are bad; the first: {}", 100 * progress_.bad_share(),
                 first_bad_row_);
    WarnOfMultiLineRows();
    ImportSummary summary{progress_,
                          source_.schema().label,
                          labels_.Summary(kLabelsShown, writer_->manifest()),
                          writer_->manifest().weight,
                          writer_->manifest().negatives_kept,
                          Unseen()};
    summary.further_labels = FurtherLabelsOf(writer_->manifest());
    if (source_.schema().has_labels())
      WarnOfOneValue(summary.label_name, summary.label, summary.dropped_rows);
    WarnOfOneValue(summary.further_labels);
    WarnOfWeights(summary.weight);
    WarnOfUntrainedRows();
    skipped_->Close();
    Finish(&summary);
    summary.grown = Grown();
    summary.trains_unseen = TrainsUnseen();
    WarnOfRareValues();
    // Data with another dataset's vocabularies has its transforms, too.
    const DatasetManifest& manifest = writer_->manifest();
    const std::string advice = spread_->Advice(manifest.dense, manifest.DenseVectors());
    if (options_.vocabulary_from.empty() && !advice.empty()) LogWarning("{}", advice);
    if (progress_.bad_rows > 0) summary.skipped_rows = writer_->FinalPathOfFile(kSkippedRowsName);
    return summary;
  }

 private:
  // `schema` has the constants of the transforms that are known.
  void SetTransforms(const DatasetSchema& schema) {
    for (size_t d = 0; d < schema.dense.size(); ++d) {
      if (!DenseTransform::ParseKnown(source_.schema().dense_transforms[d]).needs_constants())
        continue;
      unscaled_.push_back(d);
      transforms_.push_back(DenseTransform::ParseKnown(schema.dense_transforms[d]));
      if (transforms_.back().needs_constants()) fits_.emplace_back(transforms_.back());
    }
    CHECK(fits_.empty() || fits_.size() == unscaled_.size());
    spread_.emplace(schema.dense.size());
  }

  void ReadRows() {
    std::span<TextRow> rows;
    BadRow bad;
    for (int64_t reports = 0;;) {
      const RowParser::Result result = source_.Next(&rows, &bad);
      if (result == RowParser::Result::kEnd) break;
      if (result == RowParser::Result::kRow)
        TakeRows(rows);
      else
        TakeBadRow(bad);
      const int64_t due = (valid_rows() + progress_.bad_rows) / kRowsBetweenReports;
      if (std::exchange(reports, due) != due) Report();
    }
  }

  int64_t valid_rows() const {
    return progress_.rows + progress_.test_rows + progress_.dropped_rows;
  }

  void TakeRows(std::span<TextRow> rows) {
    kept_.clear();
    const int64_t first = progress_.rows;
    for (TextRow& row : rows)
      if (Keeps(row)) kept_.push_back(&row);
    if (!kept_.empty()) Append(first);
  }

  // Whether the row is one of the training set, of which it then takes note.
  bool Keeps(TextRow& row) {
    bool held_out = false;
    const std::string problem = split_ ? split_->HoldsOut(valid_rows(), row.split, &held_out) : "";
    if (!problem.empty()) {
      TakeBadRow(BadRow{.line = row.line,
                        .reason = fmt::format("column '{}': '{}' {}", Escape(split_->column()),
                                              Escape(ShortText(row.split, 40)), problem)});
      return false;
    }
    ScaleDense(row);
    if (held_out) {
      test_->Append(row, valid_rows() + progress_.bad_rows);
      ++progress_.test_rows;
      return false;
    }
    if (row.label == 0 && !negatives_.Keeps(valid_rows())) {
      ++progress_.dropped_rows;
      return false;
    }
    input_rows_->Add(progress_.rows, valid_rows() + progress_.bad_rows);
    labels_.Add(row.label, row.other_label);
    ++progress_.rows;
    if (row.num_lines > 1) CountMultiLineRow(row);
    return true;
  }

  // By the constants that are known.
  void ScaleDense(TextRow& row) const {
    if (fits_.empty())
      for (size_t i = 0; i < unscaled_.size(); ++i)
        row.dense[unscaled_[i]] = Scaled(i, row.unscaled[i]);
  }

  // kept_, which are rows of the dataset from `first` on.
  void Append(int64_t first) {
    for (size_t i = 0; i < fits_.size(); ++i)
      for (const TextRow* row : kept_)
        if (!std::isnan(row->unscaled[i])) fits_[i].Add(row->unscaled[i]);
    ids_->LookUp(kept_, first);
    for (size_t r = 0; r < kept_.size(); ++r) {
      const TextRow& row = *kept_[r];
      if (fits_.empty()) spread_->Add(row.dense);
      writer_->Append(row.label, row.dense, ids_->OneHotOf(r), ids_->BagsOf(r),
                      fits_.empty() ? std::span<const double>() : row.unscaled,
                      has_weights() ? std::optional(row.weight) : std::nullopt, row.keys,
                      row.further_labels, row.bag_weights);
    }
  }

  // Of the i-th of unscaled_; NaN: missing.
  float Scaled(size_t i, double number) const {
    return std::isnan(number) ? transforms_[i].OfMissing() : transforms_[i].Apply(number);
  }

  bool has_weights() const { return !source_.schema().weight.empty(); }

  std::vector<UnseenLookups> Unseen() const {
    std::vector<UnseenLookups> unseen;
    if (options_.is_training_data()) return unseen;
    for (size_t f = 0; f < ids_->size(); ++f) {
      if (!ids_->VocabularyOf(f).knows_unseen()) continue;
      unseen.push_back(ids_->LookupsOf(f));
      unseen.back().feature = source_.schema().categorical[f].name;
    }
    return unseen;
  }

  // After Finish().
  std::vector<GrownVocabulary> Grown() const {
    std::vector<GrownVocabulary> grown;
    if (!options_.grow) return grown;
    for (size_t f = 0; f < ids_->size(); ++f) {
      const Vocabulary& vocabulary = ids_->VocabularyOf(f);
      if (ids_->IsOwner(f) && vocabulary.knows_unseen())
        grown.push_back({source_.schema().categorical[f].name, std::ssize(vocabulary.values()),
                         vocabulary.added(), vocabulary.absent()});
    }
    return grown;
  }

  // After Finish().
  std::vector<TrainedUnseen> TrainsUnseen() const {
    std::vector<TrainedUnseen> trains;
    if (!options_.is_training_data()) return trains;
    for (size_t f = 0; f < ids_->size(); ++f)
      if (ids_->IsOwner(f) && ids_->VocabularyOf(f).unseen_share() > 0)
        trains.push_back(
            {source_.schema().categorical[f].name, ids_->VocabularyOf(f).unseen_share()});
    return trains;
  }

  void CountMultiLineRow(const TextRow& row) {
    if (++progress_.multi_line_rows == 1) first_multi_line_row_ = source_.PlaceOf(row.line);
    lines_of_multi_line_rows_ += row.num_lines;
  }

  // A stray quote in each of two rows can turn all lines between them into one text.
  void WarnOfMultiLineRows() const {
    const int64_t rows = progress_.multi_line_rows;
    if (rows == 0) return;
    LogWarning(
        "{} {} {}, the first at {}: as intended if quoted texts contain line breaks, "
        "otherwise "
        "stray quotes have merged rows",
        rows, rows == 1 ? "row spans" : "rows span", Counted(lines_of_multi_line_rows_, "line"),
        first_multi_line_row_);
  }

  // Only for a test set.
  void WarnOfUntrainedRows() const {
    if (options_.is_training_data()) return;
    std::vector<std::string> names;
    for (size_t f = 0; f < ids_->size(); ++f)
      if (const Vocabulary& vocabulary = ids_->VocabularyOf(f); vocabulary.knows_unseen() &&
                                                                vocabulary.unseen_is_untrained() &&
                                                                ids_->LookupsOf(f).unseen > 0)
        names.push_back(source_.schema().categorical[f].name);
    if (names.empty()) return;
    LogWarning(
        "{}: values that the training data lacks use the embedding for unseen values, which no row "
        "of {} trains: import the training data again",
        fmt::join(names, ", "), options_.vocabulary_from);
  }

  // Only of training data; after Finish().
  void WarnOfRareValues() const {
    if (!options_.is_training_data()) return;
    for (size_t f = 0; f < ids_->size(); ++f) {
      const double share = ids_->VocabularyOf(f).rare_share();
      if (!ids_->IsOwner(f) || ids_->LookupsOf(f).lookups < kEnoughLookups ||
          share < kNearlyAllRare)
        continue;
      const std::string& name = source_.schema().categorical[f].name;
      LogWarning(
          "feature '{}' cannot learn: {:.3g} % of its lookups read the row for rare values ({}); "
          "{}use --vocabulary '{}=hash:N'",
          name, 100 * share, ids_->VocabularyOf(f).spec(),
          options_.format == "csv" ? "if it identifies rows, give it the role key; otherwise " : "",
          name);
    }
  }

  void WarnOfWeights(const WeightSummary& weight) const {
    if (!has_weights() || !options_.is_training_data()) return;
    if (weight.max == 0)
      LogWarning("the weight '{}' is 0 in all rows, from which no model can learn", weight.name);
    else if (weight.mean > kUsualWeight || weight.mean < 1 / kUsualWeight)
      LogWarning(
          "the mean of the weights '{}' is {:.4g}: it multiplies all gradients, as a learning rate "
          "would; divide the weights by it, so that only their ratios count",
          weight.name, weight.mean);
  }

  void TakeBadRow(const BadRow& bad) {
    // What concerns the whole file is said once.
    const bool has_advice = !bad.advice.empty() && bad.advice != last_advice_;
    last_advice_ = bad.advice;
    const std::string message = fmt::format("{}: {}{}{}", source_.PlaceOf(bad.line), ReasonOf(bad),
                                            has_advice ? "; " : "", has_advice ? bad.advice : "");
    const std::string alternative = bad.alternative.empty() ? "" : "; " + bad.alternative;
    if (!options_.skip_bad_rows)
      Fail(ErrorCode::kData, "{}; {}fix the row, or {}{}", message,
           bad.advice.empty() ? "" : "otherwise ", source_.HowToSkip(), alternative);
    skipped_->Add(source_.name(), bad.line, ReasonOf(bad));
    if (progress_.bad_rows == 0) first_bad_row_ = message + alternative;
    if (++progress_.bad_rows <= kBadRowsShown) LogWarning("skipped {}", message);
    if (progress_.bad_rows == kBadRowsShown + 1)
      LogWarning("further bad rows are not shown; a finished dataset lists all in {}",
                 kSkippedRowsName);
  }

  void Report() {
    source_.Report(&progress_);
    if (options_.progress) options_.progress(progress_);
    ThrowIfStopped(options_.stop);
  }

  void Finish(ImportSummary* summary) {
    DatasetManifest& manifest = writer_->manifest();
    std::vector<std::vector<int32_t>> id_maps(ids_->size());
    for (size_t f = 0; f < ids_->size(); ++f) {
      Vocabulary& vocabulary = ids_->VocabularyOf(f);
      if (vocabulary.provisional()) id_maps[f] = vocabulary.Finish();
      if (!ids_->IsOwner(f)) id_maps[f] = id_maps[ids_->OwnerOf(f)];
      const std::string& name = manifest.categorical[f];
      FeatureEntry& entry = manifest.features.at(name);
      entry.num_embeddings = vocabulary.num_embeddings();
      entry.vocabulary = vocabulary.spec();
      entry.unseen = vocabulary.unseen_share();
      if (ids_->IsOwner(f)) vocabulary.Save(writer_->vocabulary_folder(), name, &manifest);
    }
    manifest.vocabularies_reused = !options_.is_training_data();
    // A generator's report describes the whole file only.
    if (options_.inputs.size() == 1 && progress_.bad_rows == 0 && progress_.dropped_rows == 0 &&
        !split_)
      if (const auto bayes_optimal = ReadTeacherReport(options_.inputs[0], progress_.rows))
        manifest.generated["teacher"] = *bayes_optimal;
    for (size_t i = 0; i < fits_.size(); ++i) {
      transforms_[i] = fits_[i].Finish();
      manifest.dense_transforms[unscaled_[i]] = transforms_[i].text();
    }
    // Also where programs that know no such file would have left rows out, so that it can be told
    // from theirs (InputRows).
    manifest.skipped_rows = progress_.bad_rows;
    if (split_ || progress_.bad_rows > 0 || progress_.dropped_rows > 0 ||
        manifest.negatives_kept != 1) {
      manifest.input_rows = input_rows_->Close();
      manifest.format_version = std::max(manifest.format_version, kKeysFormatVersion);
    }
    const std::vector<std::vector<int32_t>>* maps = provisional_ ? &id_maps : nullptr;
    DatasetWriter::Scale scale;
    DatasetWriter::SeeDense see_dense;
    if (!fits_.empty()) {
      scale = [this](size_t i, double number) { return Scaled(i, number); };
      see_dense = [this](std::span<const float> dense) { spread_->Add(dense); };
    }
    writer_->Complete(maps, scale, see_dense);
    if (test_) {
      summary->test.push_back(test_->Complete(ids_->vocabularies(), manifest, scale, kLabelsShown));
      // First: who finds a training set finds both.
      test_->Commit();
    }
    writer_->Commit();
  }

  const ImportOptions& options_;
  const NegativeSampler negatives_;
  RowSource& source_;
  std::optional<RowIds> ids_;
  bool provisional_ = false;
  // Dense features whose transforms take constants of the data; `fits_` is empty if they are known.
  std::vector<size_t> unscaled_;
  std::vector<DenseTransform> transforms_;
  std::vector<DenseFit> fits_;
  std::optional<DenseSpread> spread_;
  std::optional<DatasetWriter> writer_;
  std::optional<RowSplit> split_;
  std::optional<HeldOutRows> test_;
  std::optional<SkippedRows> skipped_;
  std::optional<InputRowsWriter> input_rows_;
  std::vector<TextRow*> kept_;  // of the rows that are being taken, those of the training set
  ImportProgress progress_;
  LabelCounter labels_;
  std::string first_bad_row_;
  std::string last_advice_;           // of the last bad row
  std::string first_multi_line_row_;  // "file:line"
  int64_t lines_of_multi_line_rows_ = 0;
};

}  // namespace

ImportSummary ImportRows(const ImportOptions& options, RowSource& source) {
  if (!options.split.empty() && !options.is_training_data())
    Fail(ErrorCode::kUsage,
         "--split and --vocabulary-from cannot be combined without --grow: a test set needs no "
         "training set beside it");
  if (options.grow && options.vocabulary_from.empty())
    Fail(ErrorCode::kUsage, "--grow needs --vocabulary-from DIR, whose vocabularies grow");
  const SplitDirectory directory(options);
  return MakingDataset(options.output, [&] { return Importer(options, source).Run(); });
}

ImportSummary ImportDataset(const ImportOptions& options) {
  const std::unique_ptr<RowSource> source = MakeTextSource(options);
  return ImportRows(options, *source);
}

}  // namespace renzan
