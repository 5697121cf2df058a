#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/data/dataset/manifest.h"
#include "renzan/data/text/csv_schema.h"
#include "renzan/data/text/csv_testing.h"
#include "renzan/data/text/label_rule.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using testing::Csv;
using testing::ExpectError;
using ::testing::HasSubstr;
using ::testing::Not;

// A rule, the values that it maps to 0 and to 1, and values that no rule may guess.
TEST(ImportCsv, LabelsThatNoRuleNamesAreErrors) {
  const struct {
    const char *rule, *recorded;
    std::vector<const char*> negative, positive, neither;
  } kCases[] = {
      {"", "", {"0", "0.0", "-0"}, {"1", "1.0", "+1"}, {"2", "-1", "nan", "true", "1 ", "y"}},
      {", values: 0/1", "", {"0"}, {"1"}, {"2"}},
      {", values: -1/1", "values -1/1", {"-1", "-1.0"}, {"1", "+1.0"}, {"0", "2", "nan", "no"}},
      {", values: no/yes",
       "values no/yes",
       {"no", "No", "NO"},
       {"yes", "Yes"},
       {"y", "n", "0", "true", "yes ", "nose"}},
      {", values: false/true",
       "values false/true",
       {"false", "False"},
       {"true", "TRUE"},
       {"t", "1", "yes", "NA"}},
      {", positive_above: 3",
       "positive_above 3",
       {"3", "-1", "3.0"},
       {"3.5", "4"},
       {"nan", "four"}},
      {", at_least: 3", "at_least 3", {"2.9", "-1"}, {"3", "4"}, {"nan", "four"}},
      {", positive: \"1\", negative: \"0\"",
       "positive 1",
       {"0"},
       {"1"},
       {"1.0", "1 ", "nan", "NA", "y", "2"}},
      {", positive: \"1\", negative: other", "positive 1", {"0", "1.0", "nan", "y"}, {"1"}, {}},
  };
  TemporaryDirectory dir;
  const auto schema_of = [](const char* rule) {
    return fmt::format("columns: {{y: {{role: label{}}}, x: {{role: dense}}}}\n", rule);
  };
  for (const auto& test : kCases) {
    WriteFileAtomically(dir / "schema.yaml", schema_of(test.rule));
    const LabelRule rule = CsvSchema::ReadFile(dir / "schema.yaml").columns[0].label;
    EXPECT_EQ(rule.text(), test.recorded);
    float label = -1;
    bool is_other = false;
    for (const char* field : test.negative) {
      EXPECT_EQ(rule.Parse(field, &label, &is_other), "") << test.rule;
      EXPECT_EQ(label, 0) << test.rule << " " << field;
    }
    for (const char* field : test.positive) {
      EXPECT_EQ(rule.Parse(field, &label, &is_other), "") << test.rule;
      EXPECT_EQ(label, 1) << test.rule << " " << field;
    }
    for (const char* field : test.neither)
      EXPECT_NE(rule.Parse(field, &label, &is_other), "") << test.rule << " " << field;
    EXPECT_NE(rule.Parse("", &label, &is_other), "") << "missing is never a label";
  }
  const std::string texts = schema_of(", positive: \"1\", negative: \"0\"");
  ExpectError(ErrorCode::kData,
              HasSubstr("in0.csv:3: column 1 (y): 'y' is neither '1' nor '0'; fix the row, or skip "
                        "bad rows with --on-bad-row skip; 'negative: other' in the schema would "
                        "count this and every other text but '1' as a negative"),
              [&] { Csv(texts, {"y,x\n1,2\ny,x\n"}).Import(); });
}

TEST(ImportCsv, SaysHowManyLabelsAreOneAndWhichWereNotNamed) {
  const std::string schema =
      "columns: {y: {role: label, positive: a, negative: other}, x: {role: dense}}\n";
  const Csv csv(schema, {"y,x\na,1\nb,1\nA,1\nb,2\na ,1\nb,1\nA,3\n"});
  const ImportSummary done = csv.Import();
  EXPECT_EQ(done.label_name, "y");
  EXPECT_EQ(done.label.rows, 7);
  EXPECT_EQ(done.label.positive_rows, 1);
  EXPECT_EQ(done.label.other_rows, 6);
  ASSERT_EQ(done.label.other_texts.size(), 3u);
  EXPECT_EQ(done.label.other_texts[0].text, "b");
  EXPECT_EQ(done.label.other_texts[0].rows, 3);
  EXPECT_EQ(done.label.other_texts[1].text, "A");
  EXPECT_EQ(done.label.other_texts[2].text, "a ");
  EXPECT_EQ(ReadManifest(csv.options.output).positive_rows, 1);
}

// The default is a rule like any other.
TEST(ImportCsv, LabelsOfATestSetAreMappedByTheSameRule) {
  const auto schema_of = [](const std::string& rule) {
    return "columns: {y: {role: label" + rule + "}, x: {role: dense}}\n";
  };
  const std::string text = "y,x\n1,1\n0,2\n";
  const auto import_test = [&](const Csv& training, const std::string& rule) {
    Csv test(schema_of(rule), {text});
    test.options.vocabulary.clear();
    test.options.vocabulary_from = training.options.output;
    ::testing::internal::CaptureStderr();
    const auto log = [] { return ::testing::internal::GetCapturedStderr(); };
    try {
      test.Import();
    } catch (const Error&) {
      log();
      throw;
    }
    return log();
  };
  const Csv plain(schema_of(""), {text}), limit(schema_of(", at_least: 1"), {text});
  plain.Import();
  limit.Import();
  EXPECT_EQ(import_test(plain, ""), "");
  EXPECT_EQ(import_test(plain, ", values: 0/1"), "");
  EXPECT_EQ(import_test(limit, ", at_least: 1"), "");
  ExpectError(ErrorCode::kConfig,
              HasSubstr("were mapped by 'values 0/1', here they are by 'at_least 1'"),
              [&] { import_test(plain, ", at_least: 1"); });
  ExpectError(ErrorCode::kConfig,
              HasSubstr("were mapped by 'at_least 1', here they are by 'values 0/1'"),
              [&] { import_test(limit, ""); });
  // A version before rules and parsing were recorded.
  const std::string yaml = ReadFile(plain.options.output + "/dataset.yaml");
  const size_t begin = yaml.find("parsing: ");
  testing::RewriteManifest(plain.options.output,
                           yaml.substr(begin, yaml.find('\n', begin) + 1 - begin), "");
  EXPECT_THAT(import_test(plain, ", at_least: 1"),
              HasSubstr("it does not record their rule; import it again"));
}

TEST(ImportCsv, WarnsOfOneClass) {
  const auto log_of = [](const std::string& rule, const std::string& text) {
    ::testing::internal::CaptureStderr();
    Csv("columns: {y: {role: label" + rule + "}, x: {role: dense}}\n", {text}).Import();
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(log_of("", "y,x\n1,1\n1,2\n"), HasSubstr("the label 'y' is 1 in every row (2 rows)"));
  EXPECT_THAT(
      log_of(", positive: a, negative: other", "y,x\nA,1\nA,2\n"),
      AllOf(HasSubstr("the label 'y' is 0 in every row (2 rows)"), HasSubstr("which text")));
  EXPECT_THAT(log_of("", "y,x\n1,1\n0,2\n"), Not(HasSubstr("the label")));
}

}  // namespace
}  // namespace renzan
