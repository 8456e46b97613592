// The one place where libcurl's codes become ours.
#pragma once

#include <curl/curl.h>

#include <string>

#include "core/base/result.h"
#include "core/base/time.h"

namespace dartfs::core {

// `what` begins the text ("GET http://h/x"), `detail` is libcurl's own (may be empty), `os_errno`
// as CURLINFO_OS_ERRNO.
Error CurlError(CURLcode code, const std::string& what, const char* detail, long os_errno);

// "250 ms", "5 s", "1.5 s"
std::string HumanDuration(Duration d);

}  // namespace dartfs::core
