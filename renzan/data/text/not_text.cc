#include "renzan/data/text/not_text.h"

#include "renzan/base/error.h"

namespace renzan {
namespace {

using std::string_view_literals::operator""sv;

struct Format {
  std::string_view magic, name;
  std::string_view advice;  // {0} is the file
};

constexpr Format kFormats[] = {
    {"PK\x03\x04"sv, "a zip archive (or an Excel or .npz file)",
     "unpack it (unzip '{0}'), or pipe its file in: unzip -p '{0}' | renzan data import - ..."},
    {"PK\x05\x06"sv, "an empty zip archive", "give the file itself"},
    {"\xfd"
     "7zXZ\0"sv,
     "compressed with xz",
     "unpack it (xz -dk '{0}'), or pipe it in: xzcat '{0}' | renzan data import - ..."},
    {"7z\xbc\xaf\x27\x1c"sv, "a 7z archive",
     "unpack it (7z x '{0}'), or pipe its file in: 7z x -so '{0}' | renzan data import - ..."},
    {"\x04\x22\x4d\x18"sv, "compressed with lz4",
     "unpack it (lz4 -d '{0}'), or pipe it in: lz4cat '{0}' | renzan data import - ..."},
    {"ARROW1\0\0"sv, "an Arrow (Feather) file",
     "write it as CSV first, such as with Python: import pandas; "
     "pandas.read_feather('{0}').to_csv('{0}.csv', index=False)"},
    {"Obj\x01"sv, "an Avro file", "write it as CSV first"},
    {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file", "write it as CSV first"},
    {"\x93NUMPY"sv, "a NumPy array", "write it as CSV first, such as with numpy.savetxt"},
    {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv, "an Excel file", "write it as CSV first"},
};

constexpr std::string_view kConvert = "convert it: iconv -f {1} -t UTF-8 '{0}' > '{0}.utf8'";

[[noreturn]] void FailNotText(const std::string& file, std::string_view what,
                              std::string_view advice, std::string_view encoding = "") {
  Fail(ErrorCode::kData, "{}: this is {}, not plain, gzip or zstd text: {}", file, what,
       fmt::format(fmt::runtime(advice), file, encoding));
}

// The encoding of text whose characters take more than a byte, or "".
std::string_view WideEncoding(std::string_view start) {
  if (start.starts_with("\xff\xfe\0\0"sv) || start.starts_with("\0\0\xfe\xff"sv)) return "UTF-32";
  if (start.starts_with("\xff\xfe"sv) || start.starts_with("\xfe\xff"sv)) return "UTF-16";
  // Without a byte order mark: every other byte of ASCII is zero.
  if (start.size() < 4) return "";
  const bool zero[] = {start[0] == 0, start[1] == 0, start[2] == 0, start[3] == 0};
  if (!zero[0] && zero[1] && !zero[2] && zero[3]) return "UTF-16LE";
  if (zero[0] && !zero[1] && zero[2] && !zero[3]) return "UTF-16BE";
  return "";
}

}  // namespace

void FailUnlessText(std::string_view start, const std::string& file) {
  for (const Format& format : kFormats)
    if (start.starts_with(format.magic)) FailNotText(file, format.name, format.advice);
  // These could begin a text: "PAR1" may name a column.
  if (start.starts_with("PAR1") && start.size() > 4 && static_cast<unsigned char>(start[4]) < ' ' &&
      std::string_view("\t\r\n").find(start[4]) == std::string_view::npos)
    FailNotText(file, "a Parquet file",
                "import it with --format parquet, or with Python: python3 -m renzan.data import "
                "--schema FILE "
                "--output DIR '{0}'");
  if (start.starts_with("BZh") && start.size() >= 10 && start.substr(4, 6) == "1AY&SY")
    FailNotText(
        file, "compressed with bzip2",
        "unpack it (bunzip2 -k '{0}'), or pipe it in: bzcat '{0}' | renzan data import - ...");
  const std::string_view encoding = WideEncoding(start);
  if (!encoding.empty()) FailNotText(file, fmt::format("{} text", encoding), kConvert, encoding);
}

}  // namespace renzan
