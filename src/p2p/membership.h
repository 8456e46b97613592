// Membership: who is in the cluster, by what this node was told and has seen itself
// (spec/cluster.md 3.9). Pure; not thread-safe; time and chance are arguments.
//
// Adding is fast and on hearsay: being wrong costs one request. Forgetting is slow: it moves
// ownership, so it waits for `forget_after` without direct contact. Direct contact is an answer
// that a member gave under its own ID, or its calling us; what others say of a member is none, or
// two survivors would keep a dead one alive for each other. For as long again who was forgotten is
// not added on hearsay, since others may forget it later: it is called, and what it answers counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"
#include "p2p/string_hash.h"
#include "p2p/view.h"

namespace dartfs::p2p {

struct MembershipOptions {
  Member self;
  core::Duration forget_after = std::chrono::seconds(60);
  core::Duration refresh = std::chrono::seconds(5);  // between roster exchanges
  size_t max_members = 16384;                        // self among them
  size_t max_id_bytes = 253;                         // of an ID; of an address those of a port more
  size_t max_roster_bytes = size_t{3} << 20;  // of all in JSON, about (WIRE.md section 5: 4 MiB)
  double max_weight = 1000;
  double min_weight = 1e-3;
  // Whether an address may be believed (--peer-allow); empty: any.
  std::function<bool(std::string_view addr)> allows_address = {};
};

// What of a report was not believed. Its other members are learned all the same.
struct RejectedMember {
  std::string id;  // as reported: foreign text
  const char* why;
};

// One that is to be asked for its roster.
struct RosterCall {
  std::string id;
  std::string addr;
  // False: a sign of life is enough. `If-None-Match: *` (RFC 9110, 13.1.2) spares its body.
  bool wants_roster = true;
};

class Membership {
 public:
  explicit Membership(MembershipOptions options);

  // The roster of `from` (empty: it did not say who it is). Its own entry is its word. The others
  // are hearsay: adds the unknown, takes the newest address of the known, unless that was in direct
  // contact within the last third of forget_after and so has the address we know; another weight of
  // one that we have met is no more than a reason to ask it. Entries of this node itself are passed
  // over. Weights that are not finite are refused, others clamped.
  std::vector<RejectedMember> Learn(std::span<const Member> reported, core::TimePoint now,
                                    std::string_view from = {});
  // `id` has called from `addr` (host:port of its peer listener; empty: it did not say).
  void OnCalledBy(std::string_view id, std::string_view addr, core::TimePoint now);
  // A member answered under its own ID; empty: it did not say who it is, and nobody is credited.
  void OnAnswerOf(std::string_view responder_id, core::TimePoint now);
  // Forgets who has not been in contact for too long. To be called each `interval`: time in which
  // it was not, as the machine slept or this process was stopped, is nobody's absence.
  void Expire(core::TimePoint now);

  const Member& self() const { return options_.self; }
  size_t size() const { return known_.size() + 1; }
  // Grows with each change of what Members returns.
  uint64_t generation() const { return generation_; }
  // Self included. All are ready, but those of hearsay that did not answer when they were called:
  // they join, and own nothing until they do (whoever reports many that do not exist would else
  // give all chunks to nobody); so do those of hearsay that are said to weigh more than all that
  // were met, and all of hearsay where they are more than those, once this node has been there for
  // forget_after. This is each node's own matter, and neither on
  // the wire nor in the epoch.
  std::vector<Member> Members() const;
  // What others are told: self and those that this node has met. What was only heard is not passed
  // on: a dead member's memory would go round for ever among nodes that forget it at different
  // times.
  std::vector<Member> Roster() const;
  // How often to ask Due: `refresh`, or oftener in a large cluster, so that its calls spread.
  core::Duration interval() const;
  // Which of so many seeds to call now for their rosters: all, each `refresh`; once the cluster is
  // large and known, so few that all its nodes together do not burden the seeds.
  std::vector<size_t> SeedsDue(size_t seeds, core::TimePoint now, core::Random& random);
  // Whom to call now: all of a small cluster; of a large one each shortly before a third of
  // forget_after has passed since the last contact, so that it is in contact three times before it
  // would be forgotten, whoever of the two called; who is new within `refresh`; and three a
  // `refresh` at random for their rosters. One that does not answer is called again after
  // `refresh`. Of those that were never met no more at a time than half of those that were, and 64,
  // and none at an address twice: others choose what is called there.
  std::vector<RosterCall> Due(core::TimePoint now, core::Random& random);
  // A peer's answer names an epoch that is not ours: whether to ask it for its roster now. At most
  // once a second.
  bool OnOtherEpoch(core::TimePoint now);

 private:
  struct Known {
    std::string addr;
    double weight = 1;
    core::TimePoint contact{};  // or when it was learned of
    bool met = false;           // has there been any contact?
    bool doubted = false;       // others report another weight
    int calls = 0;              // that were not answered, before there was any contact
    core::TimePoint called_after{};
  };
  struct Forgotten {
    Known last;
    core::TimePoint until{};
    bool reported = false;  // by others, since
  };

  bool IsReady(const Known& known) const;
  void NoteFlood();
  void MakeRoom();
  const char* WhyNot(const Member& member) const;
  void Put(const Member& member, bool own_word, core::TimePoint now);
  void OnContact(std::string_view id, core::TimePoint now);
  bool IsSmall() const;
  bool IsDue(const Known& known, core::TimePoint now, core::Random& random) const;

  const MembershipOptions options_;
  StringMap<Known> known_;
  StringMap<Forgotten> forgotten_;               // at most max_members
  size_t met_ = 0;                               // of known_
  size_t roster_bytes_ = 0;                      // of known_
  bool flooded_ = false;                         // more of hearsay than were met
  core::TimePoint begun_ = core::kNoDeadline;    // the first Expire
  core::TimePoint expired_ = core::kNoDeadline;  // the last
  core::TimePoint seeds_after_ = core::TimePoint::min();
  core::TimePoint other_epoch_until_{};
  uint64_t generation_ = 0;
};

}  // namespace dartfs::p2p
