// Names that desktops, shells and indexers look for everywhere, whether or not they are there: a
// mount asks no origin for them unless a listing has them. Pure.
#pragma once

#include <string_view>

namespace dartfs::fs {

// `name` as the kernel gives it.
bool IsAskedByHabit(std::string_view name);

}  // namespace dartfs::fs
