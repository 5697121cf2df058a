#pragma once

// Parses a store's XML answers. Pure functions; unknown elements are ignored.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace renzan::s3 {

struct ErrorAnswer {
  std::string code;         // "NoSuchKey"; empty if the body is not an error answer
  std::string message;      // in the store's words
  std::string region;       // the bucket's region, if the request went to another one
  std::string server_time;  // if the clocks differ too much
};
ErrorAnswer ParseError(const std::string& body);

struct Object {
  std::string key;
  uint64_t bytes = 0;
  std::string etag;
};

struct ListPage {
  std::vector<Object> objects;
  std::vector<std::string> prefixes;  // with the delimiter at their end
  std::string next;                   // the next page's continuation token; empty: this is the last
};
// Of ListObjectsV2 with encoding-type=url. Throws Error kIo if it is something else.
ListPage ParseListPage(const std::string& body);

// Of CreateMultipartUpload. Throws Error kIo.
std::string ParseUploadId(const std::string& body);

struct UploadsPage {
  std::vector<std::pair<std::string, std::string>> uploads;  // key and id
  std::string next_key, next_id;                             // both empty: this is the last
};
// Of ListMultipartUploads. Throws Error kIo.
UploadsPage ParseUploadsPage(const std::string& body);

// The request of CompleteMultipartUpload, for parts 1, 2 ...
std::string CompletionOf(const std::vector<std::string>& etags);

}  // namespace renzan::s3
