#include "app/argv.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "core/base/text.h"

namespace dartfs::app {

void HideSecretArguments(int argc, char** argv) {
  for (char* argument : std::span(argv, static_cast<size_t>(argc))) {
    const std::string_view text(argument);
    if (text.find("://") == text.npos || text.find_first_of("@?#") == text.npos) continue;
    const std::string shown = core::RedactUrl(text);
    const size_t length = text.size();
    const size_t kept = std::min(shown.size(), length);
    std::fill(std::copy_n(shown.begin(), kept, argument), argument + length, '\0');
  }
}

}  // namespace dartfs::app
