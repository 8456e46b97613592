#include "core/base/hash.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "core/base/text.h"

namespace dartfs::core {
namespace {

// FIPS 180-2's vectors, and those of the xxHash project for seed 0.
TEST(Hash, KnownVectors) {
  EXPECT_EQ(HexEncode(Sha256("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HexEncode(Sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Xxh3(""), 0x2d06800538d394c2U);
}

TEST(Hash, BytesAndTextAgree) {
  const std::string text("a\0b", 3);
  EXPECT_EQ(Xxh3(text), Xxh3(AsBytes(text)));
  EXPECT_NE(Xxh3(text), Xxh3(std::string_view("a")));
}

#if defined(__x86_64__)
// Whether a vector register has something in its upper half.
__attribute__((target("avx"), noinline)) bool UpperHalvesAreInUse() {
  std::array<uint64_t, 16 * 4> ymm{};
  asm volatile(
      "vmovdqu %%ymm0, 0(%0)\n vmovdqu %%ymm1, 32(%0)\n vmovdqu %%ymm2, 64(%0)\n"
      "vmovdqu %%ymm3, 96(%0)\n vmovdqu %%ymm4, 128(%0)\n vmovdqu %%ymm5, 160(%0)\n"
      "vmovdqu %%ymm6, 192(%0)\n vmovdqu %%ymm7, 224(%0)\n vmovdqu %%ymm8, 256(%0)\n"
      "vmovdqu %%ymm9, 288(%0)\n vmovdqu %%ymm10, 320(%0)\n vmovdqu %%ymm11, 352(%0)\n"
      "vmovdqu %%ymm12, 384(%0)\n vmovdqu %%ymm13, 416(%0)\n vmovdqu %%ymm14, 448(%0)\n"
      "vmovdqu %%ymm15, 480(%0)\n vzeroupper\n"
      :
      : "r"(ymm.data())
      : "memory");
  for (size_t i = 0; i < ymm.size(); ++i) {
    if (i % 4 >= 2 && ymm[i] != 0) return true;
  }
  return false;
}

TEST(Hash, LeavesNothingInTheUpperHalvesOfVectorRegisters) {
  if (__builtin_cpu_supports("avx") == 0) GTEST_SKIP() << "a processor without AVX";
  asm volatile("vzeroupper");
  ASSERT_FALSE(UpperHalvesAreInUse());
  for (const size_t length : {1U, 200U, 241U, 4096U, 65536U, 1048577U}) {
    const std::string text(length, 'a');
    Xxh3(text);
    EXPECT_FALSE(UpperHalvesAreInUse()) << "Xxh3 of " << length;
    Xxh3(AsBytes(text));
    EXPECT_FALSE(UpperHalvesAreInUse()) << "Xxh3 of " << length << " bytes";
    Sha256(text);
    EXPECT_FALSE(UpperHalvesAreInUse()) << "Sha256 of " << length;
    for (const char* algorithm : {"sha256", "sha512"}) {
      Digester::Create(algorithm)->Update(AsBytes(text));
      EXPECT_FALSE(UpperHalvesAreInUse()) << algorithm << " of " << length;
    }
  }
}
#endif

TEST(Digester, EqualsTheWholeHoweverTheInputIsCut) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  const std::string whole = HexEncode(Sha256(text));
  for (const size_t step : {1U, 63U, 64U, 65U, 999U, 1000U}) {
    const auto digester = Digester::Create("sha256");
    ASSERT_NE(digester, nullptr);
    for (size_t at = 0; at < text.size(); at += step) {
      digester->Update(AsBytes(std::string_view(text).substr(at, step)));
    }
    EXPECT_EQ(digester->FinishHex(), whole) << step;
  }
}

TEST(Digester, Sha512) {
  const auto digester = Digester::Create("sha512");
  digester->Update(AsBytes("abc"));
  EXPECT_EQ(digester->FinishHex(),
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
            "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
}

TEST(Digester, OtherAlgorithmsAreNone) {
  for (const char* name : {"", "sha1", "md5", "SHA256", "sha256 "}) {
    EXPECT_EQ(Digester::Create(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace dartfs::core
