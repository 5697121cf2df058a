#include "renzan/storage/s3/answers.h"

#include <charconv>
#include <pugixml.hpp>
#include <string_view>

#include "renzan/base/error.h"

namespace renzan::s3 {
namespace {

// The root element, if it is the expected one.
pugi::xml_node Parse(const std::string& body, const char* root, pugi::xml_document& document) {
  const pugi::xml_parse_result result = document.load_buffer(body.data(), body.size());
  const pugi::xml_node node = document.child(root);
  if (!result || !node)
    Fail(
        ErrorCode::kIo,
        "the answer is not the expected {} ({}): is there an S3-compatible store at this endpoint?",
        root, result ? "another document" : result.description());
  return node;
}

int ValueOf(char hex) {
  if (hex >= '0' && hex <= '9') return hex - '0';
  if (hex >= 'a' && hex <= 'f') return hex - 'a' + 10;
  if (hex >= 'A' && hex <= 'F') return hex - 'A' + 10;
  return -1;
}

// "+" is a space: servers encode names like query values.
std::string Decode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && ValueOf(text[i + 1]) >= 0 &&
        ValueOf(text[i + 2]) >= 0) {
      decoded += static_cast<char>(ValueOf(text[i + 1]) * 16 + ValueOf(text[i + 2]));
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

}  // namespace

ErrorAnswer ParseError(const std::string& body) {
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size())) return {};
  const pugi::xml_node error = document.child("Error");
  return {.code = error.child_value("Code"),
          .message = error.child_value("Message"),
          .region = error.child_value("Region"),
          .server_time = error.child_value("ServerTime")};
}

ListPage ParseListPage(const std::string& body) {
  pugi::xml_document document;
  const pugi::xml_node root = Parse(body, "ListBucketResult", document);
  const bool encoded = std::string_view(root.child_value("EncodingType")) == "url";
  const auto name = [encoded](const char* text) { return encoded ? Decode(text) : text; };
  ListPage page;
  for (const pugi::xml_node contents : root.children("Contents")) {
    const std::string_view size = contents.child_value("Size");
    Object object{
        .key = name(contents.child_value("Key")), .bytes = 0, .etag = contents.child_value("ETag")};
    const auto end = size.data() + size.size();
    if (std::from_chars(size.data(), end, object.bytes).ptr != end || size.empty())
      Fail(ErrorCode::kIo, "the list of objects gives '{}' as the size of '{}'", size, object.key);
    page.objects.push_back(std::move(object));
  }
  for (const pugi::xml_node prefix : root.children("CommonPrefixes"))
    page.prefixes.push_back(name(prefix.child_value("Prefix")));
  if (std::string_view(root.child_value("IsTruncated")) == "true") {
    page.next = root.child_value("NextContinuationToken");
    if (page.next.empty())
      Fail(ErrorCode::kIo, "the list of objects is truncated but has no continuation token");
  }
  return page;
}

std::string ParseUploadId(const std::string& body) {
  pugi::xml_document document;
  const std::string id =
      Parse(body, "InitiateMultipartUploadResult", document).child_value("UploadId");
  if (id.empty()) Fail(ErrorCode::kIo, "the store began an upload without an id");
  return id;
}

UploadsPage ParseUploadsPage(const std::string& body) {
  pugi::xml_document document;
  const pugi::xml_node root = Parse(body, "ListMultipartUploadsResult", document);
  const bool encoded = std::string_view(root.child_value("EncodingType")) == "url";
  UploadsPage page;
  for (const pugi::xml_node upload : root.children("Upload")) {
    const char* const key = upload.child_value("Key");
    page.uploads.emplace_back(encoded ? Decode(key) : key, upload.child_value("UploadId"));
  }
  if (std::string_view(root.child_value("IsTruncated")) == "true") {
    const char* const key = root.child_value("NextKeyMarker");
    page.next_key = encoded ? Decode(key) : key;
    page.next_id = root.child_value("NextUploadIdMarker");
    // Some stores leave out the next key.
    if (page.next_key.empty() && !page.uploads.empty()) page.next_key = page.uploads.back().first;
  }
  return page;
}

std::string CompletionOf(const std::vector<std::string>& etags) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("CompleteMultipartUpload");
  for (size_t i = 0; i < etags.size(); ++i) {
    pugi::xml_node part = root.append_child("Part");
    part.append_child("PartNumber").text() = static_cast<unsigned long>(i + 1);
    part.append_child("ETag").text() = etags[i].c_str();
  }
  struct : pugi::xml_writer {
    std::string text;
    void write(const void* data, size_t size) override {
      text.append(static_cast<const char*>(data), size);
    }
  } writer;
  document.save(writer, "", pugi::format_raw | pugi::format_no_declaration);
  return writer.text;
}

}  // namespace renzan::s3
