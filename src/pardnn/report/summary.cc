#include "pardnn/report/summary.h"

#include <boost/json.hpp>

#include "pardnn/base/quantity.h"
#include "pardnn/plan/memory_bound.h"
#include "pardnn/report/text_table.h"

namespace pardnn {

namespace json = boost::json;

namespace {

__extension__ using Wide = __int128;

std::int64_t per_mille(std::int64_t part, Wide whole) {
  return whole == 0 ? 0 : static_cast<std::int64_t>(Wide{part} * 1000 / whole);
}

std::string percent(std::int64_t per_mille) { return std::to_string((per_mille + 5) / 10) + " %"; }

// "1.93 times as fast as one device": rounded down, so that more is never promised.
std::string speed_text(const Problem& problem, std::int64_t step_ns, std::int64_t bound_ns) {
  const std::optional<std::int64_t> alone_ns = one_device_ns(problem);
  if (!alone_ns) return "no device may do all ops";
  if (bound_ns >= *alone_ns) return "no plan is faster than one device with enough memory";
  if (step_ns >= *alone_ns) return "not faster than one device with enough memory";
  const std::int64_t hundredths = per_mille(*alone_ns, step_ns) / 10;
  const std::string part = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + (part.size() == 1 ? ".0" : ".") + part +
         " times as fast as one device with enough memory";
}

}  // namespace

Table<DeviceId, DeviceWork> device_work(const Problem& problem, const Plan& plan) {
  Table<DeviceId, DeviceWork> work(problem.device_count());
  for (const DeviceId device : problem.devices()) {
    for (const OpId op : plan.sequences[device]) {
      ++work[device].ops;
      work[device].busy_ns += problem.duration_ns(op, device);
    }
  }
  for (const Transfer& transfer : plan.prediction.transfers) {
    work[transfer.from].bytes_sent += transfer.bytes;
  }
  return work;
}

std::int64_t utilisation_per_mille(const Problem& problem, const Plan& plan) {
  std::int64_t busy_ns = 0;
  for (const DeviceWork& work : device_work(problem, plan)) busy_ns += work.busy_ns;
  return per_mille(busy_ns, Wide{plan.prediction.step_ns} * problem.device_count());
}

std::optional<std::int64_t> one_device_ns(const Problem& problem) {
  std::optional<std::int64_t> least_ns;
  for (const DeviceId device : problem.devices()) {
    std::int64_t sum_ns = 0;
    bool may_do_all = true;
    for (const OpId op : problem.graph().ops()) {
      if (problem.graph().is_every(op)) continue;
      may_do_all = may_do_all && problem.is_allowed(*problem.unit(op), device);
      if (!may_do_all) break;
      sum_ns += problem.duration_ns(op, device);
    }
    if (may_do_all && (!least_ns || sum_ns < *least_ns)) least_ns = sum_ns;
  }
  return least_ns;
}

std::string bound_text(std::int64_t step_ns, std::int64_t bound_ns) {
  if (bound_ns == 0) return "no bound is known";
  if (step_ns == bound_ns) return "the best possible";
  // Rounded up: the promise must hold.
  const std::int64_t above = per_mille(step_ns - bound_ns, bound_ns) / 10 + 1;
  return "at most " + std::to_string(above) + " % above the best possible (" + format_ns(bound_ns) +
         ")";
}

std::string summary_text(const Problem& problem, const Plan& plan) {
  const Prediction& prediction = plan.prediction;
  std::string text = "step " + format_ns(prediction.step_ns) + ", " +
                     bound_text(prediction.step_ns, plan.bound_ns) + "\n" +
                     speed_text(problem, prediction.step_ns, plan.bound_ns) + "\n" + "sent " +
                     format_bytes(prediction.bytes_sent) + " in " +
                     std::to_string(prediction.transfers.size()) + " transfers, devices busy " +
                     percent(utilisation_per_mille(problem, plan)) + " of the time\n" + "plan " +
                     plan.algorithm + "\n\n";
  TextTable table({"device", "limit", "peak", "any timing", "ops", "busy", "sends"});
  const auto work = device_work(problem, plan);
  for (const DeviceId device : problem.devices()) {
    const Peak& peak = prediction.peaks[device];
    table.add(
        {problem.machine().devices[device].name, format_bytes(problem.limit_bytes(device)),
         format_bytes(peak.bytes),
         problem.rules().dispatch == Dispatch::kFifo ? "-" : format_bytes(peak.any_timing_bytes),
         std::to_string(work[device].ops),
         percent(per_mille(work[device].busy_ns, prediction.step_ns)),
         format_bytes(work[device].bytes_sent)});
  }
  return text + table.text();
}

std::string moves_text(const Moved& moves) {
  return std::to_string(moves.moved) + " of " + std::to_string(moves.matched) +
         " matched ops moved, " + std::to_string(moves.added) + " are new, " +
         std::to_string(moves.gone) + " are gone";
}

std::string summary_json(const Problem& problem, const Plan& plan,
                         const std::optional<Explanation>& explanation,
                         const std::optional<Moved>& moves) {
  const Prediction& prediction = plan.prediction;
  json::object summary{{"fits", plan.score.fits()},
                       {"algorithm", plan.algorithm},
                       {"step_ns", prediction.step_ns},
                       {"bound_ns", plan.bound_ns},
                       {"one_device_ns", nullptr},
                       {"memory_bound_bytes", memory_bound(problem).bytes},
                       {"overflow_bytes", plan.score.overflow_bytes},
                       {"bytes_sent", prediction.bytes_sent},
                       {"transfers", prediction.transfers.size()},
                       {"utilisation_per_mille", utilisation_per_mille(problem, plan)},
                       {"seed", plan.seed},
                       {"steps", plan.steps}};
  if (const auto alone_ns = one_device_ns(problem)) summary["one_device_ns"] = *alone_ns;
  json::array devices;
  const auto work = device_work(problem, plan);
  for (const DeviceId device : problem.devices()) {
    const Peak& peak = prediction.peaks[device];
    devices.push_back({{"device", problem.machine().devices[device].name},
                       {"limit_bytes", problem.limit_bytes(device)},
                       {"peak_bytes", peak.bytes},
                       {"peak_at_ns", peak.at_ns},
                       {"any_timing_peak_bytes", peak.any_timing_bytes},
                       {"ops", work[device].ops},
                       {"busy_ns", work[device].busy_ns},
                       {"bytes_sent", work[device].bytes_sent}});
  }
  summary["devices"] = std::move(devices);
  if (explanation) summary["explanation"] = json::parse(explanation_json(problem, *explanation));
  if (moves) {
    summary["moves"] = {{"ops_matched", moves->matched},
                        {"ops_moved", moves->moved},
                        {"ops_new", moves->added},
                        {"ops_gone", moves->gone}};
  }
  return json::serialize(summary) + "\n";
}

}  // namespace pardnn
