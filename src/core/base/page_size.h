// The unit of O_DIRECT and of the page cache.
#pragma once

#include <cstddef>

namespace dartfs::core {

inline constexpr size_t kPageSize = 4096;

}  // namespace dartfs::core
