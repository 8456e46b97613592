// The operator's page, as its files (admin/) were when this was built.
#pragma once

#include <string_view>

namespace dartfs::httpd {

extern const std::string_view kAdminPageHtml;
extern const std::string_view kAdminPageJs;
extern const std::string_view kAdminFormatJs;
extern const std::string_view kAdminElementsJs;
extern const std::string_view kAdminChartsJs;
extern const std::string_view kAdminPageCss;

}  // namespace dartfs::httpd
