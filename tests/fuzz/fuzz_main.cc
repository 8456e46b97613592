// A driver for LLVMFuzzerTestOneInput without libFuzzer: runs the seeds, then mutations of them.
// The same seed number gives the same inputs. A crash leaves its input in the artifact file, which
// can be given as the only argument to run it again.
//
//   fuzz_<name> [--seed=N] [--iterations=N] [--max-seconds=N] [--dict=FILE] [--artifact=FILE]
//               [FILE or DIRECTORY]...
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// There under the address sanitizer only, which does not raise SIGABRT.
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());

namespace {

constexpr size_t kMaxInputBytes = 4096;

// What the crash handler writes out.
std::string g_current;
std::string g_artifact = "fuzz.crash";

struct Options {
  uint64_t seed = 1;
  uint64_t iterations = 200'000;
  uint64_t max_seconds = 0;  // 0: no limit
  std::string dict;
  std::vector<std::string> inputs;
};

void WriteArtifact() {
  const int fd = open(g_artifact.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return;
  const bool written = write(fd, g_current.data(), g_current.size()) >= 0;
  close(fd);
  constexpr std::string_view kNote = "fuzz: the input is in the artifact file\n";
  if (written && write(STDERR_FILENO, kNote.data(), kNote.size()) < 0) return;
}

void OnCrash(int signal_number) {
  WriteArtifact();
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

void Run(std::string input) {
  g_current = std::move(input);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(g_current.data()), g_current.size());
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// In a fixed order.
std::vector<std::string> ReadInputs(const std::vector<std::string>& arguments) {
  std::vector<std::filesystem::path> paths;
  for (const auto& argument : arguments) {
    if (!std::filesystem::is_directory(argument)) {
      paths.emplace_back(argument);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argument)) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) inputs.push_back(ReadFile(path));
  return inputs;
}

// libFuzzer's format: one "token" a line, with \xHH, \" and \\; '#' begins a comment.
std::vector<std::string> ReadDict(const std::string& path) {
  std::vector<std::string> tokens;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t begin = line.find('"');
    const size_t end = line.rfind('"');
    if (line.empty() || line[0] == '#' || begin == std::string::npos || end <= begin) continue;
    std::string token;
    for (size_t i = begin + 1; i < end; ++i) {
      if (line[i] == '\\' && line[i + 1] == 'x' && i + 3 < end) {
        token += static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16));
        i += 3;
      } else {
        if (line[i] == '\\') ++i;
        token += line[i];
      }
    }
    tokens.push_back(token);
  }
  return tokens;
}

class Mutator {
 public:
  Mutator(uint64_t seed, std::vector<std::string> seeds, std::vector<std::string> dict)
      : random_(seed), seeds_(std::move(seeds)), dict_(std::move(dict)) {
    if (seeds_.empty()) seeds_.emplace_back();
  }

  std::string Next() {
    std::string text = Any(seeds_);
    for (size_t rounds = 1 + Below(6); rounds > 0; --rounds) Mutate(text);
    if (text.size() > kMaxInputBytes) text.resize(kMaxInputBytes);
    return text;
  }

 private:
  size_t Below(size_t limit) { return static_cast<size_t>(random_() % limit); }
  const std::string& Any(const std::vector<std::string>& from) { return from[Below(from.size())]; }
  char AnyByte() { return static_cast<char>(Below(256)); }
  std::string Slice(const std::string& text) {
    const size_t begin = Below(text.size() + 1);
    return text.substr(begin, Below(text.size() - begin + 1));
  }

  void Mutate(std::string& text) {
    const size_t at = Below(text.size() + 1);
    switch (Below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << Below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = AnyByte();
        break;
      case 2:
        text.insert(at, 1, AnyByte());
        break;
      case 3:
        text.erase(at, Below(16));
        break;
      case 4:
        text.insert(at, Slice(text));
        break;
      case 5:
        text = text.substr(0, at) + Slice(Any(seeds_));
        break;
      default:
        if (!dict_.empty()) text.insert(at, Any(dict_));
        break;
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> seeds_;
  std::vector<std::string> dict_;
};

Options ParseArguments(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (name == "--seed") {
      options.seed = std::stoull(value);
    } else if (name == "--iterations") {
      options.iterations = std::stoull(value);
    } else if (name == "--max-seconds") {
      options.max_seconds = std::stoull(value);
    } else if (name == "--dict") {
      options.dict = value;
    } else if (name == "--artifact") {
      g_artifact = value;
    } else {
      options.inputs.push_back(argument);
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = ParseArguments(argc, argv);
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(number, OnCrash);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(WriteArtifact);
  std::vector<std::string> seeds = ReadInputs(options.inputs);
  std::printf("fuzz: %zu inputs, seed %llu\n", seeds.size(),
              static_cast<unsigned long long>(options.seed));
  std::fflush(stdout);
  for (const auto& seed : seeds) Run(seed);
  if (options.inputs.size() == 1 && std::filesystem::is_regular_file(options.inputs[0])) return 0;

  const auto start = std::chrono::steady_clock::now();
  const auto limit = std::chrono::seconds(options.max_seconds);
  Mutator mutator(options.seed, std::move(seeds), ReadDict(options.dict));
  uint64_t done = 0;
  for (; done < options.iterations; ++done) {
    Run(mutator.Next());
    if (options.max_seconds == 0 || done % 64 != 0) continue;
    if (std::chrono::steady_clock::now() - start >= limit) break;
  }
  std::printf("fuzz: %llu mutations, no failure\n", static_cast<unsigned long long>(done));
  return 0;
}
