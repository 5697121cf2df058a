#include "renzan/cluster/kubernetes/api/base64.h"

#include <openssl/evp.h>

namespace renzan::cluster::kubernetes {

std::string EncodeBase64(const std::string& bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

std::optional<std::string> DecodeBase64(std::string text) {
  std::erase_if(text, [](char c) { return c == '\n' || c == '\r' || c == ' '; });
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = text.size() % 4 != 0
                       ? -1
                       : EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                         reinterpret_cast<const unsigned char*>(text.data()),
                                         static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  // OpenSSL counts the padding as bytes.
  for (size_t i = text.size(); i > 0 && text[i - 1] == '='; --i) bytes.pop_back();
  return bytes;
}

}  // namespace renzan::cluster::kubernetes
