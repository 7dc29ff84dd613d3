#include "pardnn/partition/confirm.h"

#include <string>
#include <vector>

#include "pardnn/base/error.h"
#include "pardnn/check/check.h"

namespace pardnn {

namespace {

constexpr std::size_t kShown = 3;

}  // namespace

void confirm(const Problem& problem, const Plan& plan) {
  const std::vector<std::string> wrong = check(problem, plan, kShown);
  if (wrong.empty()) return;
  std::string text = "the checker does not confirm the plan of '" + plan.algorithm + "'";
  for (const std::string& sentence : wrong) text += "; " + sentence;
  throw BrokenPromise(text);
}

}  // namespace pardnn
