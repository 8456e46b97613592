#include "fs/habit_names.h"

#include <gtest/gtest.h>

namespace dartfs::fs {
namespace {

TEST(HabitNames, WhatIsLookedForEverywhere) {
  for (const char* name : {".Trash", ".Trash-1000", "autorun.inf", ".git", ".DS_Store"}) {
    EXPECT_TRUE(IsAskedByHabit(name)) << name;
  }
}

TEST(HabitNames, NamesThatOnlyLookAlikeAreAskedFor) {
  for (const char* name : {"", ".", "Trash", ".gitignore", "x.git", "git", ".trash", "autorun.img",
                           "a.Trash-1", ".hidden", ".x"}) {
    EXPECT_FALSE(IsAskedByHabit(name)) << name;
  }
}

}  // namespace
}  // namespace dartfs::fs
