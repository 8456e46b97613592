// The control endpoints under /_ctl/. README.md lists them.
#pragma once

#include <functional>

#include "origin/answer.h"

namespace dartfs::origin {

class Service;

struct ControlAnswer {
  Answer answer;
  std::function<void()> then;  // after the answer was written
};

bool IsControl(const Request& request);
// Bad input is answered 400 with the reason and changes nothing.
ControlAnswer HandleControl(const Request& request, Service& service);

}  // namespace dartfs::origin
