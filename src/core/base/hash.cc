#include "core/base/hash.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#if defined(__x86_64__)
#include <immintrin.h>
#include <xxh_x86dispatch.h>  // the same sums by the widest vectors that the processor has
#else
#include <xxhash.h>
#endif

#include "core/base/check.h"
#include "core/base/text.h"

namespace dartfs::core {

namespace {

#if defined(__x86_64__)
__attribute__((target("avx"))) void ClearUpperHalves() { _mm256_zeroupper(); }

// The library returns with values in the upper halves of the vector registers. As long as they are
// there, and in every thread that this one starts, some hundred nanoseconds go with each change
// between code for SSE, as all of this program is, and for AVX, as libc's copying is.
void LeaveVectors() {
  if (__builtin_cpu_supports("avx") != 0) ClearUpperHalves();
}
#else
void LeaveVectors() {}
#endif

}  // namespace

uint64_t Xxh3(std::span<const std::byte> bytes) {
  const uint64_t sum = XXH3_64bits(bytes.data(), bytes.size());
  LeaveVectors();
  return sum;
}

uint64_t Xxh3(std::string_view bytes) { return Xxh3(AsBytes(bytes)); }

std::array<std::byte, 32> Sha256(std::string_view bytes) {
  std::array<std::byte, 32> digest;
  unsigned int length = 0;
  const int ok =
      EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()),
                 &length, EVP_sha256(), nullptr);
  DARTFS_CHECK(ok == 1 && length == digest.size());
  return digest;
}

struct Digester::Impl {
  struct Free {
    void operator()(EVP_MD_CTX* p) const { EVP_MD_CTX_free(p); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context;
};

std::unique_ptr<Digester> Digester::Create(std::string_view algorithm) {
  const EVP_MD* method = nullptr;
  if (algorithm == "sha256") method = EVP_sha256();
  if (algorithm == "sha512") method = EVP_sha512();
  if (method == nullptr) return nullptr;
  std::unique_ptr<Digester> digester(new Digester);
  digester->impl_ = std::make_unique<Impl>();
  digester->impl_->context.reset(EVP_MD_CTX_new());
  EVP_MD_CTX* context = digester->impl_->context.get();
  DARTFS_CHECK(context != nullptr && EVP_DigestInit_ex(context, method, nullptr) == 1);
  return digester;
}

Digester::~Digester() = default;

void Digester::Update(std::span<const std::byte> bytes) {
  DARTFS_CHECK(EVP_DigestUpdate(impl_->context.get(), bytes.data(), bytes.size()) == 1);
}

std::string Digester::FinishHex() {
  std::array<std::byte, EVP_MAX_MD_SIZE> digest;
  unsigned int length = 0;
  DARTFS_CHECK(EVP_DigestFinal_ex(impl_->context.get(),
                                  reinterpret_cast<unsigned char*>(digest.data()), &length) == 1);
  return HexEncode(std::span(digest).first(length));
}

}  // namespace dartfs::core
