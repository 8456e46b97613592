#include "core/store/index_phase.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "core/base/text.h"
#include "core/store/layout.h"

namespace dartfs::core {
namespace {

constexpr unsigned kMaxDeaths = 9;  // one digit

// Two bytes: the phase, and how many runs in a row died in it before this one.
IndexPhase::Deaths ParseNote(const std::array<char, 2>& note) {
  using Phase = IndexPhase::Phase;
  const auto phase = static_cast<Phase>(note[0]);
  const bool sane =
      (phase == Phase::kOpening || phase == Phase::kCommitting) && note[1] >= '0' && note[1] <= '9';
  if (!sane) return {};
  return {phase, static_cast<unsigned>(note[1] - '0') + 1};
}

}  // namespace

Result<IndexPhase> IndexPhase::Begin(const std::string& path) {
  TRY_ASSIGN(UniqueFd fd, OpenOwnFile(path, O_RDWR | O_CREAT));
  std::array<char, 2> note = {};
  const bool read = ::pread(fd.get(), note.data(), note.size(), 0) == ssize_t{note.size()};
  IndexPhase phase(std::move(fd), read ? ParseNote(note) : Deaths{});
  const Deaths& deaths = phase.deaths_;
  const unsigned so_far = deaths.phase == Phase::kOpening ? deaths.in_a_row : 0;
  if (!phase.Write(Phase::kOpening, so_far) || ::fsync(phase.fd_.get()) != 0) {
    return ErrnoError(errno, "cannot write " + EscapeForeign(path));
  }
  return phase;
}

void IndexPhase::Enter(Phase phase) {
  // A run that opens well and then dies in its commits has its count go on.
  const bool goes_on = phase == Phase::kCommitting && deaths_.phase == phase;
  Write(phase, goes_on ? deaths_.in_a_row : 0);
}

void IndexPhase::PutBack() {
  if (deaths_.in_a_row == 0) return Enter(Phase::kIdle);
  Write(deaths_.phase, deaths_.in_a_row - 1);
}

bool IndexPhase::Write(Phase phase, unsigned deaths_in_a_row) {
  const std::array<char, 2> note = {
      static_cast<char>(phase), static_cast<char>('0' + std::min(deaths_in_a_row, kMaxDeaths - 1))};
  return ::pwrite(fd_.get(), note.data(), note.size(), 0) == ssize_t{note.size()};
}

}  // namespace dartfs::core
