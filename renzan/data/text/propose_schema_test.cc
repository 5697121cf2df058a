#include "renzan/data/text/propose_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <string>

#include "renzan/data/testing.h"
#include "renzan/data/text/column_statistics.h"
#include "renzan/data/text/propose_schema_testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Proposed;
using testing::SchemaOfColumn;
using testing::WriteText;

TEST(ProposeSchema, RolesOfEveryKind) {
  std::string text =
      ",userId,click,price,count,size,when,created_at,tags,list,fixed,none,note,\"odd: name\"\n";
  for (int row = 0; row < 200; ++row)
    text += fmt::format(
        "{},{},{},{:.2f},{},{},2024-01-{:02} {:02}:00:00,{},{},\"[{}, {}]\",x,,\"it's {}, "
        "#1\",{}\n",
        row, row % 40, row % 3 == 0 ? 1 : 0, 0.5 + row * 0.01,
        row % 50 == 0 ? 10'000'000 : row % 17, row % 4, row % 28 + 1, row % 24,
        1'700'000'000 + row * 5000, row % 2 == 0 ? "a|b" : (row % 5 == 0 ? "c" : "a|c"), row % 3,
        row % 5, row,
        row % 6 == 0   ? "NA"
        : row % 6 == 1 ? "?"
                       : "red");
  const Proposed proposed(text);
  for (const char* line :
       {"header: true\n", "delimiter: \",\"\n", "missing: [\"?\", NA]\n", "  \"\": {role: skip}",
        "  userId: {role: categorical}", "  click: {role: label}  #",
        "  price: {role: dense}  # numbers from 0.5 to 2.49",
        "  count: {role: dense, transform: log}", "  size: {role: categorical}  #",
        "  when: {role: date, date: \"%Y-%m-%d %H:%M:%S\", parts: {day: {role: dense, transform: "
        "standardize}, weekday: {role: categorical}, hour: {role: categorical}}}",
        "  created_at: {role: date, date: \"%s\", parts: ",
        "  tags: {role: multi_hot, separator: \"|\"}  # text, 3 values",
        "  list: {role: multi_hot, brackets: true}", "  fixed: {role: skip}  # constant: x\n",
        "  none: {role: skip}  # no values\n",
        "  note: {role: skip}  # text, 200 values, a different one in (nearly) every row",
        "  \"odd: name\": {role: categorical}  # text, 1 value, 34 % missing: red (66 %)"})
    EXPECT_THAT(proposed.schema, HasSubstr(line));
  const Dataset dataset(proposed.dir / "out");
  EXPECT_EQ(dataset.num_rows(), 200);
  EXPECT_THAT(dataset.schema().dense, ElementsAre("price", "count", "when.day", "created_at.day"));
}

TEST(ProposeSchema, DelimitersAndHeaders) {
  EXPECT_THAT(Proposed("1\t2\ta\n0\t3\tb\n").schema,
              AllOf(HasSubstr("delimiter: tab\nheader: false\n"), HasSubstr("c1: {role: label}")));
  EXPECT_THAT(Proposed("y;x\n1;1,5\n0;2,5\n").schema, HasSubstr("delimiter: \";\"\nheader: true"));
  EXPECT_THAT(Proposed("1::10::5::978300760\n1::11::3::978302109\n2::10::4::978301968\n").schema,
              HasSubstr("delimiter: \"::\"\nheader: false"));
  // Texts only: the first row is a header if none of its words is a value.
  EXPECT_THAT(Proposed("land,buys\nde,yes\nfr,no\nde,no\n").schema,
              AllOf(HasSubstr("header: true"),
                    HasSubstr("buys: {role: label, positive: \"yes\", negative: \"no\"}")));
  EXPECT_THAT(Proposed("de,yes\nfr,no\nde,no\n").schema, HasSubstr("header: false"));
  EXPECT_THAT(Proposed("y, x\n1, a\n0, \"b, c\"\n").schema, HasSubstr("trim: true\n"));
  EXPECT_THAT(Proposed("y,x\n1,5\" pipe\n0,\"quoted\"\n1,3\" pipe\n").schema,
              Not(HasSubstr("quotes: false")));
  EXPECT_THAT(Proposed("y,x\n1,\"5 inch\n0,\"7 inch\n1,\"9 inch\n").schema,
              HasSubstr("quotes: false"));
}

TEST(ProposeSchema, Labels) {
  EXPECT_THAT(Proposed("x,rating\n3,4.5\n1,2\n2,4\n5,1\n").schema,
              HasSubstr("rating: {role: label, at_least: 4}"));
  EXPECT_THAT(Proposed("x,target\n3,-1\n1,1\n2,-1\n").schema,
              HasSubstr("target: {role: label, at_least: 1}"));
  EXPECT_THAT(Proposed("x,y\n3,<=50K\n1,>50K\n2,<=50K\n").schema,
              HasSubstr("\"y\": {role: label, positive: \">50K\", negative: \"<=50K\"}"));
  // One value, or none.
  const auto schema_of = [](const std::string& text) {
    TemporaryDirectory dir;
    WriteText(dir / "in.csv", text);
    return ProposeSchema({.input = dir / "in.csv"});
  };
  EXPECT_THAT(schema_of("a,b\nfoo,bar\n"),
              HasSubstr("b: {role: label, positive: bar, negative: other}"));
  EXPECT_THAT(schema_of("a,b\n,NA\n,NA\n"), HasSubstr("b: {role: label}"));
  EXPECT_THAT(schema_of("a,b\n1,2\n"), HasSubstr("b: {role: label, at_least: 2}"));
  // Whatever there is, the schema can be imported: a person chooses another label.
  EXPECT_THAT(Proposed("name,place\nu,v\nw,x\ny,z\n").schema, HasSubstr("place: {role: label"));
}

// Of 5,000 rows, one has a label unlike the others.
TEST(ProposeSchema, ADirtyLabel) {
  const auto schema_of = [](const std::vector<std::string>& labels, const std::string& dirty) {
    TemporaryDirectory dir;
    std::string text = "price,clicked\n";
    for (size_t row = 0; row < 5000; ++row)
      text += fmt::format("{},{}\n", row * row % 977,
                          row == 2000 ? dirty : labels[row % labels.size()]);
    WriteText(dir / "in.csv", text);
    const std::string schema = ProposeSchema({.input = dir / "in.csv"});
    EXPECT_THAT(schema, HasSubstr("  # 1 row is a bad row with another label, such as '" + dirty +
                                  "': fix it, or import with --on-bad-row skip.\n"));
    WriteFileAtomically(dir / "schema.yaml", schema);
    ImportOptions options{.inputs = {dir / "in.csv"}, .output = dir / "out"};
    options.format = "csv";
    options.schema = dir / "schema.yaml";
    ExpectError(ErrorCode::kData, HasSubstr("in.csv:2002: column 2 (clicked): '" + dirty),
                [&] { ImportDataset(options); });
    options.skip_bad_rows = true;
    EXPECT_EQ(ImportDataset(options).rows, 4999);
    return schema;
  };
  EXPECT_THAT(schema_of({"no", "yes", "no"}, "yes?"),
              HasSubstr("clicked: {role: label, positive: \"yes\", negative: \"no\"}"));
  EXPECT_THAT(schema_of({"0", "1", "0"}, "yes?"), HasSubstr("clicked: {role: label}"));
  EXPECT_THAT(schema_of({"1", "2", "3", "4", "5"}, "five"),
              HasSubstr("clicked: {role: label, at_least: "));
}

// The wrong one of two texts would train a model to predict the opposite.
TEST(ProposeSchema, ATextThatDeniesTheOtherIsTheNegative) {
  const auto label_of = [](const std::string& frequent, const std::string& rare) {
    std::string text = "price,outcome\n";
    for (int row = 0; row < 300; ++row)
      text += fmt::format("{},{}\n", row * row % 97, row % 5 < 3 ? frequent : rare);
    const std::string schema = Proposed(text).schema;
    const size_t begin = schema.find("outcome: {");
    return schema.substr(begin, schema.find('\n', begin) - begin);
  };
  const std::string guess = "; which of the two means 1 is a guess: the rarer one";
  for (const auto& [positive, negative] : {std::pair{"ok", "not ok"},
                                           {"bought", "Not bought"},
                                           {"liked", "unliked"},
                                           {"click", "no_click"},
                                           {"smoker", "non-smoker"},
                                           {"sold", "none"},
                                           {"true", "other"}})
    for (const bool is_rare : {false, true}) {
      const std::string label =
          is_rare ? label_of(negative, positive) : label_of(positive, negative);
      EXPECT_THAT(label,
                  HasSubstr(fmt::format("positive: {}",
                                        std::string(positive) == "true" ? "\"true\"" : positive)));
      EXPECT_THAT(label, Not(HasSubstr("guess")));
    }
  for (const auto& [frequent, rare] :
       {std::pair{"ja", "nein"}, {"oui", "non"}, {"ios", "unix"}, {"a", "b"}}) {
    EXPECT_THAT(label_of(frequent, rare),
                AllOf(HasSubstr(fmt::format("positive: {}, negative: {}", rare, frequent)),
                      HasSubstr(guess)));
  }
}

// Three texts that are all frequent are no exceptions.
TEST(ProposeSchema, ALabelOfThreeTexts) {
  std::string text = "price,clicked\n";
  for (int row = 0; row < 300; ++row)
    text += fmt::format("{},{}\n", row * row % 97,
                        row % 3 == 0   ? "yes"
                        : row % 3 == 1 ? "no"
                                       : "-");
  EXPECT_THAT(Proposed(text).schema,
              HasSubstr("clicked: {role: label, positive: \"yes\", negative: other}"));
}

// A semicolon in titles separates nothing, whether few have one or many.
TEST(ProposeSchema, TitlesAreNoBags) {
  const auto schema_of = [](const std::vector<std::string>& titles) {
    std::string text = "title,click\n";
    for (int row = 0; row < 80; ++row)
      text += fmt::format("{},{}\n", titles[static_cast<size_t>(row * 5 % 8)], row % 3 == 0);
    return Proposed(text).schema;
  };
  const std::vector<std::string> titles = {"Stop; Go", "Red", "Green", "Blue",
                                           "Up",       "Low", "High",  "End"};
  EXPECT_THAT(schema_of(titles), HasSubstr("title: {role: categorical}"));
  EXPECT_THAT(schema_of({"A; B", "C; D", "E; F", "G; H", "I; J", "K; L", "M; N", "O; P"}),
              HasSubstr("title: {role: categorical}"));
  EXPECT_THAT(schema_of({"a;b", "b;c", "c", "a", "d;a", "b;d", "d", "e;a"}),
              HasSubstr("title: {role: multi_hot, separator: \";\"}"));
  // A twentieth of the rows.
  std::string rare = "tags,click\n";
  for (int row = 0; row < 80; ++row)
    rare += fmt::format("{},{}\n", row % 20 == 0 ? "a;b" : row % 2 == 0 ? "a" : "b", row % 3 == 0);
  EXPECT_THAT(Proposed(rare).schema, HasSubstr("tags: {role: categorical}"));
}

TEST(ProposeSchema, NumbersThatMayBeIds) {
  std::string text = "stock,points,level,price,change,click\n";
  for (int row = 0; row < 1000; ++row)
    text += fmt::format("{},{},{},{:.2f},{},{}\n", row % 500 + 1, row % 600 * 1000, row % 20,
                        row * 0.25, row % 100 - 50, row % 3 == 0);
  const std::string schema = Proposed(text).schema;
  const std::string hint = "; if they are ids: {role: categorical}\n";
  EXPECT_THAT(schema, AllOf(HasSubstr("# numbers from 1 to 500, 500 values" + hint),
                            HasSubstr("# numbers from 0 to 599000, 600 values" + hint),
                            HasSubstr("# numbers from 0 to 19, 20 values\n"),
                            HasSubstr("# numbers from 0 to 249.75, 1000 values, a"),
                            HasSubstr("# numbers from -50 to 49, 100 values\n")));
}

// A few rows have a number that is not 0 or 1: they are bad rows, neither 0 nor 1.
TEST(ProposeSchema, AFewOtherNumbersAreNoLabels) {
  const auto schema_of = [](const char* negative, const char* odd, int every) {
    TemporaryDirectory dir;
    std::string text = "price,clicked\n";
    for (int row = 0; row < 3000; ++row)
      text += fmt::format("{},{}\n", row * row % 977,
                          row % every == every - 1 ? odd
                          : row % 3 == 0           ? "1"
                                                   : negative);
    WriteText(dir / "in.csv", text);
    return ProposeSchema({.input = dir / "in.csv"});
  };
  for (const char* odd : {"-1", "2", "99", "0.5"})
    EXPECT_THAT(
        schema_of("0", odd, 1000),
        AllOf(HasSubstr("clicked: {role: label}  #"),
              HasSubstr(fmt::format("# 3 rows are bad rows with another label, such as '{}'", odd)),
              Not(HasSubstr("No column looks like a label"))))
        << odd;
  for (const char* odd : {"0", "7"})
    EXPECT_THAT(schema_of("-1", odd, 1000), HasSubstr("clicked: {role: label, values: -1/1}"));
  // More than a few: the limit is a guess, which says what it does.
  EXPECT_THAT(schema_of("0", "2", 10),
              HasSubstr("clicked: {role: label, at_least: 1}  # numbers from 0 to 2, 3 values: 0 "
                        "(60 %), 1 (30 %), 2 (10 %); at_least: 1 is a guess, by which 40 % are "
                        "1; values: number would take them as they are\n"));
}

// One odd name makes no data of a header, above columns of numbers.
TEST(ProposeSchema, HeadersWithAnOddName) {
  const auto schema_of = [](const std::string& header) {
    TemporaryDirectory dir;
    std::string text = header + "\n";
    for (int row = 0; row < 60; ++row)
      text += fmt::format("u{},{},{},{}\n", row % 9, row * 0.5, row % 7, row % 3 == 0 ? 1 : 0);
    WriteText(dir / "in.csv", text);
    return ProposeSchema({.input = dir / "in.csv"});
  };
  EXPECT_THAT(
      schema_of("user,price,30,clicked"),
      AllOf(HasSubstr("header: true"), HasSubstr("clicked: {role: label}"),
            HasSubstr("# The first line is taken as the header, although '30' is a number.")));
  EXPECT_THAT(schema_of("user,price,,clicked"),
              AllOf(HasSubstr("header: true"), HasSubstr("although its field 3 is empty")));
  EXPECT_THAT(schema_of("user,price,inf,clicked"), HasSubstr("header: true"));
  EXPECT_THAT(schema_of("user,price,NA,clicked"), HasSubstr("header: true"));
  ExpectError(ErrorCode::kData, HasSubstr("column 'price' appears twice: rename one"),
              [&] { schema_of("user,price,price,clicked"); });
  EXPECT_THAT(schema_of("u1,1.5,2,0"),
              AllOf(HasSubstr("header: false"),
                    HasSubstr("# The first line is taken as data, not as a header, because 'u1' "
                              "occurs below it, too.")));
  // A text where numbers are below, in a file without a header.
  EXPECT_THAT(schema_of("u1,unknown,2,0"), HasSubstr("header: false"));
  EXPECT_THAT(schema_of("user,price,size,clicked"), Not(HasSubstr("first line")));
}

TEST(ProposeSchema, NumbersOfEntitiesAreIds) {
  const auto number = [](int row) { return fmt::format("{}", row * row % 89); };
  for (const char* name : {"user", "item", "uid", "itemid", "product", "sku", "ad", "campaign"})
    EXPECT_THAT(SchemaOfColumn(name, number),
                HasSubstr(fmt::format("{}: {{role: categorical}}", name)));
  for (const char* name : {"paid", "hour", "load"})
    EXPECT_THAT(SchemaOfColumn(name, number), HasSubstr(fmt::format("{}: {{role: dense", name)));
  EXPECT_THAT(SchemaOfColumn("item", [](int row) { return fmt::format("{}", row % 89 * 0.5); }),
              HasSubstr("item: {role: dense"));
  EXPECT_THAT(SchemaOfColumn("sample_weight", number),
              HasSubstr("; if it weighs the samples: {role: weight}"));
}

TEST(ProposeSchema, HintsOnWhatIsNotPlain) {
  const auto hint = [](const std::function<std::string(int)>& value, const char* delimiter = ",") {
    return SchemaOfColumn("x", value, delimiter);
  };
  EXPECT_THAT(hint([](int row) { return fmt::format("${}.50", row % 50); }),
              HasSubstr("; numbers with '$': change that in the file for {role: dense}"));
  EXPECT_THAT(hint([](int row) { return fmt::format("{}%", row % 50); }),
              HasSubstr("; numbers with '%'"));
  EXPECT_THAT(hint([](int row) { return fmt::format("{},5", row % 50); }, ";"),
              HasSubstr("; numbers with a comma instead of the point"));
  EXPECT_THAT(hint([](int row) { return row % 9 == 0 ? "-" : fmt::format("{}", row % 50); }),
              HasSubstr("; if '-' means missing: {role: dense, missing: [\"-\"]}"));
  EXPECT_THAT(hint([](int row) { return fmt::format("{}", row % 9 == 0 ? -999 : row % 50); }),
              HasSubstr("; if -999 means missing: missing: [\"-999\"]"));
  EXPECT_THAT(hint([](int row) { return fmt::format("{}", row % 50 - 2); }),
              Not(HasSubstr("missing")));
  const auto bag = [&](const char* separator, const char* delimiter) {
    return hint([=](int row) { return fmt::format("a{}{}b{}", row % 5, separator, row % 4); },
                delimiter);
  };
  EXPECT_THAT(bag("|", ","),
              HasSubstr("x: {role: multi_hot, separator: \"|\"}  # text, 20 values: "));
  EXPECT_THAT(bag("|", ","), HasSubstr("; values separated by '|'\n"));
  EXPECT_THAT(bag(",", ";"),
              HasSubstr("; if ',' separates several values: {role: multi_hot, separator: \",\"}"));
  EXPECT_THAT(bag(" ", ","),
              HasSubstr("; if ' ' separates several values: {role: multi_hot, separator: \" \"}"));
}

TEST(ProposeSchema, FillsWhatIsMissing) {
  const auto schema_of = [](double unit) {
    return SchemaOfColumn(
        "x", [&](int row) { return row % 9 == 0 ? "" : fmt::format("{}", unit * (row % 50)); });
  };
  EXPECT_THAT(schema_of(0.01), HasSubstr("x: {role: dense, fill: mean}"));
  EXPECT_THAT(schema_of(1e4), HasSubstr("x: {role: dense, transform: standardize}"));
}

TEST(ProposeSchema, TransformsWhatIsFarFromOne) {
  const auto schema_of = [](const std::function<double(double)>& of_quantile) {
    constexpr int kRows = 300;  // of SchemaOfColumn
    return SchemaOfColumn("x", [&](int row) {
      return fmt::format("{:.4f}", of_quantile((row * 389 % kRows + 0.5) / kRows));
    });
  };
  const auto price = [](double q) { return 18 * std::pow(q / (1 - q), 0.6); };
  EXPECT_THAT(schema_of(price), HasSubstr("x: {role: dense, transform: log}"));
  EXPECT_THAT(schema_of([&](double q) { return price(q) / 10; }),
              HasSubstr("x: {role: dense, transform: log}"));
  EXPECT_THAT(schema_of([&](double q) { return price(q) - 20; }),
              HasSubstr("x: {role: dense, transform: standardize}"))
      << "log would lose the negative values";
  EXPECT_THAT(schema_of([](double q) { return 18 + 56 * q; }),
              HasSubstr("x: {role: dense, transform: standardize}"));
  EXPECT_THAT(schema_of([](double q) { return 2 * q - 1; }), HasSubstr("x: {role: dense}"));
  EXPECT_THAT(schema_of([&](double q) { return price(q) / 1000; }), HasSubstr("x: {role: dense}"))
      << "log(1 + x) is x there";
}

TEST(ProposeSchema, SaysThatNoColumnLooksLikeALabel) {
  const auto schema_of = [](const std::string& name, const std::string& a, const std::string& b) {
    std::string text = "price," + name + "\n";
    for (int row = 0; row < 100; ++row)
      text += fmt::format("{},{}\n", row * row % 97, row % 3 == 0 ? a : b);
    return Proposed(text).schema;
  };
  EXPECT_THAT(schema_of("device", "ios", "android"),
              AllOf(HasSubstr("# No column looks like a label: 'device' is a guess."),
                    HasSubstr("device: {role: label, positive: ios, negative: android}")));
  for (const auto& [name, a, b] : {std::array{"label", "ios", "android"},
                                   {"device", "1", "0"},
                                   {"device", "yes", "no"},
                                   {"device", "1", "-1"}})
    EXPECT_THAT(schema_of(name, a, b), Not(HasSubstr("No column"))) << name << a;
}

TEST(ProposeSchema, Keys) {
  std::string text = "request,note,user_id,click\n";
  for (int row = 0; row < 100; ++row)
    text += fmt::format("r-{},it is {},{},{}\n", row, row, row < 99 ? row * 3 : 0, row % 3 == 0);
  const Proposed proposed(text);
  EXPECT_THAT(proposed.schema,
              AllOf(HasSubstr("request: {role: key}"), HasSubstr("note: {role: skip}"),
                    HasSubstr("user_id: {role: skip}")));  // one value occurs twice
}

TEST(ProposeSchema, RowsThatDoNotFit) {
  TemporaryDirectory dir;
  WriteText(dir / "in.csv", "y,x\n1,2\n0,3,4\n1,5\n0,1\n");
  EXPECT_THAT(ProposeSchema({.input = dir / "in.csv"}),
              AllOf(HasSubstr("from 3 rows of"), HasSubstr("# 1 row does not have 2 fields")));
  EXPECT_THAT(ProposeSchema({.input = dir / "in.csv", .max_rows = 1}),
              HasSubstr("from the first 1 row of"));
  WriteText(dir / "empty.csv", "\n");
  ExpectError(ErrorCode::kData, HasSubstr("empty.csv has no rows"),
              [&] { ProposeSchema({.input = dir / "empty.csv"}); });
  WriteText(dir / "header.csv", "y,x\n");
  ExpectError(ErrorCode::kData, HasSubstr("header.csv has no rows"),
              [&] { ProposeSchema({.input = dir / "header.csv"}); });
  WriteText(dir / "prose.csv", "Dear all,\n\nI write, as you know, to\nyou.\n\nBest\n");
  WriteText(dir / "column.csv", "y\n1\n0\n");
  for (const char* name : {"prose.csv", "column.csv"})
    ExpectError(ErrorCode::kData, HasSubstr(std::string(name) + ": no delimiter divides"),
                [&] { ProposeSchema({.input = dir / name}); });
  ExpectError(ErrorCode::kUsage, HasSubstr("standard input"),
              [] { ProposeSchema({.input = "-"}); });
  ExpectError(ErrorCode::kNoInput, HasSubstr("none.csv"),
              [] { ProposeSchema({.input = "/none.csv"}); });
}

TEST(ProposeSchema, RealAdult) {
  SKIP_WITHOUT_SHARED_DATA("adult/train.csv.gz");
  const Proposed adult(testing::SharedData("adult/train.csv.gz"), nullptr);
  EXPECT_THAT(adult.schema, AllOf(HasSubstr("header: false"), HasSubstr("missing: [\"?\"]"),
                                  HasSubstr("c1: {role: dense, transform: standardize}"),
                                  HasSubstr("c2: {role: categorical}"),
                                  HasSubstr("c11: {role: dense, transform: log}"),
                                  HasSubstr("c15: {role: label, positive: \">50K\", negative: "
                                            "\"<=50K\"}")));
  EXPECT_EQ(Dataset(adult.dir / "out").num_rows(), 32561);
}

TEST(ProposeSchema, RealInstEval) {
  SKIP_WITHOUT_SHARED_DATA("insteval/InstEval.tsv.gz");
  const Proposed ratings(testing::SharedData("insteval/InstEval.tsv.gz"), nullptr);
  for (const char* line :
       {"delimiter: tab\nheader: true", "\"y\": {role: label, at_least: 4}",
        "  s: {role: categorical}", "  d: {role: categorical}", "dept: {role: dense}"})
    EXPECT_THAT(ratings.schema, HasSubstr(line));
}

// Unlike bags of whole numbers, whose lengths differ.
TEST(ProposeSchema, FindsVectors) {
  const auto vector = [](const char* form) {
    return SchemaOfColumn("text", [form](int row) {
      return row == 5 ? "" : fmt::format(fmt::runtime(form), row * 0.25, row % 7, -row / 8.0);
    });
  };
  EXPECT_THAT(vector("{}|{}|{}"), HasSubstr("text: {role: dense, dimension: 3}"));
  EXPECT_THAT(vector("{};{};{}"), HasSubstr("text: {role: dense, dimension: 3, separator: \";\"}"));
  EXPECT_THAT(vector("\"[{}, {}, {}]\""),
              HasSubstr("text: {role: dense, dimension: 3, brackets: true}"));
  EXPECT_THAT(vector("[{}  {} {} ]"),
              HasSubstr("text: {role: dense, dimension: 3, brackets: true, separator: \" \"}"));
  EXPECT_THAT(vector("{}|{}|x{}"), Not(HasSubstr("dimension")));
  const auto price = [](int row) { return fmt::format("{}.{},25", row % 9, 100 + row); };
  EXPECT_THAT(SchemaOfColumn("price", price, ";"), Not(HasSubstr("dimension")));
  EXPECT_THAT(SchemaOfColumn("ids", [](int row) { return fmt::format("{}|{}", row % 3, row % 5); }),
              HasSubstr("ids: {role: multi_hot"));
}

// Vectors have long texts, and a different one in every row.
TEST(ColumnStatistics, HoldsABoundedNumberOfBytes) {
  ColumnStatistics values;
  for (const int row : {0, 1, 2, 3, 4, 5, 6, 7, 8, 3})
    values.Add(std::string(ColumnStatistics::kMaxDistinctBytes / 4, 'a') + std::to_string(row));
  EXPECT_EQ(values.distinct(), 4u);
  EXPECT_TRUE(values.many_distinct());
  EXPECT_EQ(values.present_while_counted(), 4);
  EXPECT_EQ(values.present(), 10);
  const auto most = values.MostFrequent(1);
  ASSERT_EQ(most.size(), 1u);
  EXPECT_EQ(most[0].first.back(), '3');
  EXPECT_EQ(most[0].second, 2);
}

}  // namespace
}  // namespace renzan
