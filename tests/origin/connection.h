// One client connection: reads requests, plays their scripts.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "origin/http_text.h"
#include "origin/service.h"

struct event;
struct event_base;

namespace dartfs::origin {

// Lives on one event thread, which alone calls it; owned by that thread's Worker. An entry point
// that finds the connection over sets dead(); the owner destroys it then.
class Connection {
 public:
  // Takes the descriptor over.
  Connection(event_base* base, int fd, Service& service);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // `on_dead` is called at the end of the event that ended the connection.
  void Start(void (*on_dead)(Connection*, void*), void* arg);
  bool dead() const { return dead_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Progress { kDone, kBlocked, kFailed };

  static void OnReadable(int, short, void* self);
  static void OnWritable(int, short, void* self);
  static void OnTimer(int, short, void* self);
  void Finish();  // of every event: reports death

  void Read();
  void Go();  // as far as it goes without waiting
  bool TakeRequest();
  bool TakeBody(std::size_t head_size, Request request);
  void StartScript(Script script);
  void EndScript();
  void Play();

  Progress PlayStep(Step& step);
  Progress SendText(Step& step);
  Progress SendBody(Step& step);
  Progress Drip(Step& step);
  Progress Wait(const Step& step);
  Progress Reset();
  long SendSome(const Step& step, std::size_t limit);
  Progress AfterSend(long sent, Step& step);
  std::uint64_t Allowance(std::uint64_t wanted);
  Progress BlockFor(std::chrono::microseconds time);

  Service& service_;
  const int fd_;
  const std::uint64_t number_;
  void (*on_dead_)(Connection*, void*) = nullptr;
  void* on_dead_arg_ = nullptr;
  event* readable_;
  event* writable_;
  event* timer_;

  std::string input_;
  bool continue_sent_ = false;  // for the request whose body is being read
  bool peer_closed_ = false;
  bool first_request_ = true;
  bool dead_ = false;

  // The script being played.
  bool playing_ = false;
  Script script_;
  StatsTable::EntryPtr entry_;
  std::size_t step_ = 0;
  std::uint64_t step_done_ = 0;  // bytes of the step that are sent
  bool waiting_ = false;         // a timer step has begun
  bool timer_fired_ = false;
  int reset_polls_ = 0;
  std::uint64_t tokens_ = 0;  // body bytes that the rate allows now
  Clock::time_point tokens_at_;
};

}  // namespace dartfs::origin
