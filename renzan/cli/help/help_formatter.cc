#include "renzan/cli/help/help_formatter.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace renzan {
namespace {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    const std::string several = " ...";
    if (!option->get_allow_extra_args())
      if (const size_t at = text.find(several); at != std::string::npos)
        text.erase(at, several.size());
    return text;
  }
};

}  // namespace

void UseHelpFormatter(CLI::App& app) { app.formatter(std::make_shared<HelpFormatter>()); }

}  // namespace renzan
