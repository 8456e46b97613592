#include "app/json_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace dartfs::app {
namespace {

TEST(JsonFields, OnlyTheRightTypeCounts) {
  const auto object = nlohmann::json::parse(
      R"({"text": "a", "number": -7, "real": 1.5, "huge": 18446744073709551615, "flag": true,
          "nothing": null, "list": [1]})");
  EXPECT_EQ(TextField(object, "text"), "a");
  EXPECT_EQ(NumberField(object, "number"), -7);
  EXPECT_EQ(BoolField(object, "flag"), true);
  for (const char* name : {"number", "real", "flag", "nothing", "list", "absent"}) {
    EXPECT_FALSE(TextField(object, name)) << name;
  }
  for (const char* name : {"text", "real", "flag", "nothing", "list", "absent"}) {
    EXPECT_FALSE(NumberField(object, name)) << name;
  }
  for (const char* name : {"text", "number", "nothing", "list", "absent"}) {
    EXPECT_FALSE(BoolField(object, name)) << name;
  }
  NumberField(object, "huge");  // does not throw
  EXPECT_EQ(Field(nlohmann::json::array(), "a"), nullptr);
  EXPECT_EQ(Field(nlohmann::json("text"), "a"), nullptr);
}

}  // namespace
}  // namespace dartfs::app
