#include "pardnn/report/explanation.h"

#include <algorithm>

#include <boost/json.hpp>

#include "pardnn/base/error.h"
#include "pardnn/base/quantity.h"
#include "pardnn/plan/memory_bound.h"

namespace pardnn {

namespace json = boost::json;

namespace {

const Device& last_device(const Problem& problem) {
  return problem.machine().devices.rows().back();
}

bool are_alike(const Problem& problem) {
  const auto& devices = problem.machine().devices;
  return std::ranges::all_of(devices, [&](const Device& device) {
    return device.capacity_bytes == devices.begin()->capacity_bytes &&
           device.kind == devices.begin()->kind;
  });
}

// "898MiB per device", or, of a machine whose devices differ, those that must grow.
std::string memory_text(const Problem& problem, const Enough& enough) {
  if (are_alike(problem)) {
    return exact_bytes(std::ranges::max(enough.capacity_bytes.rows())) + " per device";
  }
  std::string text;
  for (const DeviceId device : problem.devices()) {
    if (enough.capacity_bytes[device] == problem.capacity_bytes(device)) continue;
    text += (text.empty() ? "" : ", ") + exact_bytes(enough.capacity_bytes[device]) + " on " +
            problem.machine().devices[device].name;
  }
  return text;
}

std::string devices_text(const Problem& problem, const Enough& enough) {
  const MoreDevices& devices = enough.devices;
  const std::string like = are_alike(problem)
                               ? "devices of " + exact_bytes(last_device(problem).capacity_bytes)
                               : "devices, the new ones like " + last_device(problem).name;
  if (devices.never) {
    for (const Impossible& reason : enough.impossible) {
      if (reason.why != Impossible::Why::kUnit) continue;
      return "more devices of this memory would not help: " + unit_name(problem, *reason.unit) +
             " needs a larger one (proven)\n";
    }
    return "more devices of this memory would not help: nothing is left of it (proven)\n";
  }
  std::string text;
  if (devices.found) {
    text = "it would fit with " + std::to_string(*devices.found) + " " + like +
           " (a plan was found)\n";
  } else if (devices.tried > 0) {
    text = "no plan was found with up to " + std::to_string(devices.tried) + " " + like + "\n";
  }
  if (devices.least > problem.device_count() + 1 && devices.least != devices.found) {
    text += "at least " + std::to_string(devices.least) + " " + like + " are needed (proven)\n";
  }
  return text;
}

std::string enough_text(const Problem& problem, const Enough& enough) {
  std::string text;
  bool is_bound_said = false;
  for (const Impossible& reason : enough.impossible) {
    text += "impossible: " + sentence(problem, reason) + "\n";
    is_bound_said |= reason.why == Impossible::Why::kMoment;
  }
  if (!is_bound_said) {
    text += "any plan needs at least " + format_bytes(memory_bound(problem).bytes) +
            " on all devices together (proven)\n";
  }
  return text + "it would fit with " + memory_text(problem, enough) + " (a plan was found)\n" +
         devices_text(problem, enough);
}

json::object holder_object(const Graph& graph, const Buffer& buffer) {
  json::object object{{"kind", kind_name(buffer.what)},
                      {"name", holder_name(graph, buffer)},
                      {"bytes", buffer.bytes}};
  if (buffer.tensor) object["output"] = graph.tensor(*buffer.tensor).number;
  return object;
}

const char* why_name(Impossible::Why why) {
  switch (why) {
    case Impossible::Why::kUnit:
      return "unit";
    case Impossible::Why::kVariables:
      return "variables";
    case Impossible::Why::kPieces:
      return "pieces";
    case Impossible::Why::kMoment:
      return "moment";
  }
  PARDNN_CHECK(false);
}

json::object impossible_object(const Problem& problem, const Impossible& reason) {
  const bool is_count = reason.why == Impossible::Why::kPieces;
  json::object object{{"why", why_name(reason.why)},
                      {"sentence", sentence(problem, reason)},
                      {is_count ? "needed_devices" : "needed_bytes", reason.bytes},
                      {is_count ? "devices" : "room_bytes", reason.room_bytes}};
  if (reason.unit) object["unit"] = unit_name(problem, *reason.unit);
  return object;
}

void add_enough(json::object& object, const Problem& problem, const Enough& enough) {
  json::array impossible;
  for (const Impossible& reason : enough.impossible) {
    impossible.push_back(impossible_object(problem, reason));
  }
  object["impossible"] = std::move(impossible);
  json::object capacities;
  for (const DeviceId device : problem.devices()) {
    capacities[problem.machine().devices[device].name] = enough.capacity_bytes[device];
  }
  object["enough_memory_bytes"] = std::move(capacities);
  const MoreDevices& devices = enough.devices;
  json::object more{{"like", last_device(problem).name},
                    {"never", devices.never},
                    {"least", devices.least},
                    {"tried", devices.tried},
                    {"found", nullptr}};
  if (devices.never) more["least"] = nullptr;
  if (devices.found) more["found"] = *devices.found;
  object["more_devices"] = std::move(more);
}

}  // namespace

std::optional<Explanation> explain(const Problem& problem, const Plan& plan) {
  auto overflow = find_overflow(problem, plan);
  if (!overflow) return std::nullopt;
  return Explanation{std::move(*overflow), std::nullopt};
}

std::optional<Explanation> explain(const Problem& problem, const Plan& plan,
                                   std::string_view algorithm, const Run& run) {
  auto explanation = explain(problem, plan);
  if (explanation) explanation->enough = find_enough(problem, plan, algorithm, run);
  return explanation;
}

std::string explanation_text(const Problem& problem, const Plan& plan,
                             const std::optional<Explanation>& explanation) {
  if (!explanation) return "";
  std::string text = overflow_text(problem, plan, explanation->overflow);
  if (explanation->enough) text += enough_text(problem, *explanation->enough);
  return text;
}

std::string explanation_json(const Problem& problem, const Explanation& explanation) {
  const Overflow& overflow = explanation.overflow;
  json::array holders;
  for (const Buffer& buffer : overflow.holders) {
    holders.push_back(holder_object(problem.graph(), buffer));
  }
  json::object object{{"device", problem.machine().devices[overflow.device].name},
                      {"limit_bytes", problem.limit_bytes(overflow.device)},
                      {"bytes", overflow.bytes},
                      {"missing_bytes", overflow.missing_bytes},
                      {"at_ns", overflow.at_ns},
                      {"buffers", overflow.buffers},
                      {"holders", std::move(holders)}};
  if (explanation.enough) add_enough(object, problem, *explanation.enough);
  return json::serialize(object);
}

}  // namespace pardnn
