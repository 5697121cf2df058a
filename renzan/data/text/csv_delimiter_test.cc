// Files with another delimiter or format than they are read with.

#include "renzan/data/text/csv_delimiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using testing::Csv;
using testing::ExpectError;
using ::testing::HasSubstr;
using ::testing::Not;

const char kColumns[] =
    "columns: {y: {role: label}, price: {role: dense}, name: {role: categorical}}\n";

void ExpectAdvice(ErrorCode code, const std::string& schema, const std::string& text,
                  const std::string& problem, const std::string& delimiter,
                  const std::string& rest = "") {
  const Csv csv(schema, {text});
  ExpectError(code, HasSubstr("in0.csv:" + problem), [&] { csv.Import(); });
  ExpectError(code, HasSubstr(delimiter + rest), [&] { csv.Import(); });
}

TEST(CsvDelimiter, AHeaderWithAnotherOne) {
  for (const auto& [delimiter, name] : {std::pair(";", "\";\""), std::pair("\t", "tab"),
                                        std::pair("|", "\"|\""), std::pair("::", "\"::\"")}) {
    for (const char* quote : {"", "\""}) {
      const std::string header =
          fmt::format("{0}y{0}{1}{0}price{0}{1}{0}name{0}\n", quote, delimiter);
      ExpectAdvice(ErrorCode::kConfig, kColumns, header + fmt::format("1{0}2{0}x\n", delimiter),
                   "1: the header has columns of ", fmt::format("set delimiter: {}", name));
    }
  }
  ExpectAdvice(ErrorCode::kConfig, std::string("delimiter: tab\n") + kColumns,
               "y,price,name\n1,2,x\n", "1: the header has columns of ", "set delimiter: \",\"");
  // Patterns are no names.
  ExpectAdvice(ErrorCode::kConfig, "columns: {y: {role: label}, \"*\": {role: dense}}\n",
               "y;a;b\n1;2;3\n", "1: the header has columns of ", "set delimiter: \";\"");
  const Csv one_column("columns: {\"y z\": {role: label}, y: {role: dense}}\n", {"y z\n1\n"});
  ExpectError(ErrorCode::kConfig, HasSubstr("the header has no column 'y'"),
              [&] { one_column.Import(); });
  // Nothing is known of these columns.
  ExpectAdvice(ErrorCode::kConfig, kColumns, "a;b\n1;2\n", "1: column 1 'a;b' is not in ",
               "it is the only column: check the delimiter");
}

TEST(CsvDelimiter, RowsWithAnotherOne) {
  const std::string schema = std::string("header: false\n") + kColumns;
  ExpectAdvice(ErrorCode::kData, schema, "1;2,5;x\n", "1: 2 fields instead of 3; ",
               "with delimiter: \";\" in ", "");
  ExpectAdvice(ErrorCode::kData, schema, "1\t2\tx\n", "1: 1 field instead of 3; ",
               "with delimiter: tab in ");
  ExpectAdvice(ErrorCode::kData, schema, "\"1\";\"2\";\"x;y\"\n",
               "1: text follows the closing quote of field 1; ", "with delimiter: \";\" in ");
  // Only where it explains the row, and all rows before it.
  for (const char* text : {"1,2\n", "1,2,x\n1;2;x\n"}) {
    const Csv csv(schema, {text});
    ExpectError(ErrorCode::kData, Not(HasSubstr("delimiter")), [&] { csv.Import(); });
  }
}

TEST(CsvDelimiter, AHeaderThatTheSchemaDenies) {
  ExpectAdvice(ErrorCode::kData, std::string("header: false\n") + kColumns, "y,price,name\n1,2,x\n",
               "1: column 1 (y): 'y' is not 0 or 1",
               "; the line holds the columns' names: set header: true in ");
}

TEST(CsvDelimiter, AnotherFormatThanCriteos) {
  TemporaryDirectory dir;
  testing::WriteText(dir / "in.csv", "clicked,price\n1,2\n");
  ImportOptions options{.inputs = {dir / "in.csv"}, .output = dir / "out"};
  ExpectError(ErrorCode::kData,
              HasSubstr("in.csv:1: 1 column separated by tabs instead of 40; a file in another "
                        "format than Criteo's needs --format csv --schema FILE, and `renzan data "
                        "schema` proposes the schema; otherwise fix the row"),
              [&] { ImportDataset(options); });
  options.skip_bad_rows = true;
  ExpectError(ErrorCode::kData,
              HasSubstr("(2 bad rows; the first: " + dir / "in.csv:1: 1 column separated by tabs"),
              [&] { ImportDataset(options); });
}

}  // namespace
}  // namespace renzan
