#include "pardnn/partition/lineup.h"

#include <algorithm>

#include "pardnn/partition/times.h"

namespace pardnn {

void sort_by_start(Lineup& lineup) {
  std::stable_sort(lineup.order.begin(), lineup.order.end(),
                   [&](OpId a, OpId b) { return lineup.start_ns[a] < lineup.start_ns[b]; });
}

Walk::Walk(const Problem& problem, const Arcs& arcs)
    : problem_(problem),
      arcs_(arcs),
      contention_(problem.rules().contention),
      free_ns_(problem.device_count(), 0),
      channel_free_ns_(problem.machine().channels.size(), 0) {
  if (contention_) copy_ns_.assign(arcs.value_count() * problem.device_count(), kNotSent);
}

void Walk::mirror(Lineup& lineup) {
  mirrored_ = !mirrored_;
  std::stable_sort(lineup.order.begin(), lineup.order.end(),
                   [&](OpId a, OpId b) { return lineup.finish_ns[a] > lineup.finish_ns[b]; });
  time(lineup);
}

void Walk::restart(Lineup& lineup) {
  lineup_ = &lineup;
  std::fill(free_ns_.begin(), free_ns_.end(), 0);
  if (!waits()) return;
  std::fill(channel_free_ns_.begin(), channel_free_ns_.end(), 0);
  std::fill(copy_ns_.begin(), copy_ns_.end(), kNotSent);
  sent_.clear();
}

void Walk::time(Lineup& lineup) {
  restart(lineup);
  const std::size_t ops = problem_.graph().ops().size();
  lineup.device.resize(ops);
  lineup.start_ns.resize(ops);
  lineup.finish_ns.resize(ops);
  for (const OpId op : lineup.order) put(op, lineup.placement[*problem_.unit(op)]);
  lineup.step_ns = latest_ns();
}

std::int64_t Walk::latest_ns() const { return *std::max_element(free_ns_.begin(), free_ns_.end()); }

void Walk::put(OpId op, DeviceId device) {
  std::int64_t start_ns = free_ns_[device];
  for (const Arc& arc : producers(op)) start_ns = std::max(start_ns, send(arc, device));
  const std::int64_t finish_ns = start_ns + problem_.duration_ns(op, device);
  lineup_->device[op] = device;
  lineup_->start_ns[op] = start_ns;
  lineup_->finish_ns[op] = free_ns_[device] = finish_ns;
}

std::int64_t Walk::channels_free_ns(std::int64_t at_ns, DeviceId from, DeviceId to) const {
  for (const ChannelId channel : problem_.link(from, to).channels) {
    at_ns = std::max(at_ns, channel_free_ns_[channel]);
  }
  return at_ns;
}

std::int64_t Walk::there_ns(const Arc& arc, DeviceId device) const {
  const DeviceId from = lineup_->device[arc.op];
  std::int64_t at_ns = lineup_->finish_ns[arc.op];
  if (from == device) return at_ns;
  const std::int64_t crossing_ns = this->crossing_ns(arc.value, from, device);
  if (waits() && crossing_ns < kMaxQuantity) {
    const std::int64_t arrival_ns = copy_ns_[slot(arc.value, device)];
    if (arrival_ns != kNotSent) return arrival_ns;
    at_ns = channels_free_ns(at_ns, from, device);
  }
  return saturating_add(at_ns, crossing_ns);
}

// As `there_ns`, and the value is sent.
std::int64_t Walk::send(const Arc& arc, DeviceId device) {
  const std::int64_t arrival_ns = there_ns(arc, device);
  const DeviceId from = lineup_->device[arc.op];
  if (!waits() || from == device || arrival_ns == kMaxQuantity) return arrival_ns;
  std::int64_t& copy_ns = copy_ns_[slot(arc.value, device)];
  if (copy_ns != kNotSent) return arrival_ns;
  copy_ns = arrival_ns;
  sent_.push_back(slot(arc.value, device));
  const Link& link = problem_.link(from, device);
  for (const ChannelId channel : link.channels) {
    channel_free_ns_[channel] = arrival_ns - link.latency_ns;
  }
  return arrival_ns;
}

void Walk::mark() {
  marked_free_ns_ = free_ns_;
  marked_channel_free_ns_ = channel_free_ns_;
  sent_.clear();
}

void Walk::back_to_mark() {
  free_ns_ = marked_free_ns_;
  channel_free_ns_ = marked_channel_free_ns_;
  for (const std::size_t slot : sent_) copy_ns_[slot] = kNotSent;
  sent_.clear();
}

}  // namespace pardnn
