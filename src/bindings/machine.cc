#include "pardnn/problem/machine.h"

#include <string>
#include <variant>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "pardnn/base/error.h"
#include "pardnn/io/machine_json.h"
#include "pardnn/io/machine_presets.h"

#include "bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace pardnn::python {

namespace {

Machine uniform(std::size_t devices,
                const std::variant<std::int64_t, std::vector<std::int64_t>>& memory,
                const std::string& kind, std::int64_t bandwidth, std::int64_t overhead,
                std::int64_t latency, std::int64_t granularity, std::int64_t reserve) {
  Machine::Uniform options;
  if (const auto* each = std::get_if<std::vector<std::int64_t>>(&memory)) {
    if (each->size() != devices) {
      throw Error("memory: found " + std::to_string(each->size()) + " limits, expected " +
                  std::to_string(devices) + ", one per device");
    }
    options.capacity_bytes = *each;
  } else {
    options.capacity_bytes.assign(devices, std::get<std::int64_t>(memory));
  }
  options.kind = kind;
  options.bytes_per_second = bandwidth;
  options.overhead_ns = overhead;
  options.latency_ns = latency;
  options.granularity_bytes = granularity;
  options.reserve_bytes = reserve;
  return Machine::uniform(options);
}

}  // namespace

void add_machine(nb::module_& module) {
  nb::class_<Machine>(module, "Machine", "Devices with their memory, and the links between them.")
      .def_static("uniform", &uniform, nb::kw_only(), "devices"_a, "memory"_a, "kind"_a = "any",
                  "bandwidth"_a = 12'000'000'000, "overhead"_a = 0, "latency"_a = 0,
                  "granularity"_a = 1, "reserve"_a = 0,
                  "Devices d0, d1, ... of one kind, each pair with a link of its own.\n\n"
                  "memory: bytes, one number or one per device. bandwidth: bytes per second.\n"
                  "overhead, latency: ns. granularity: buffers are rounded up to it. reserve:\n"
                  "bytes of each device that are always in use.")
      .def_static("read", &find_machine, "path"_a,
                  "Read a machine file (JSON), or take a preset by its name, such as 'pcie-4'.")
      .def_static(
          "parse", [](const std::string& text) { return read_machine(text, "machine"); }, "text"_a,
          "The machine that the text of a machine file states.")
      .def("text", &write_machine, "The machine as the text of a machine file.")
      .def_prop_ro(
          "device_names",
          [](const Machine& self) {
            std::vector<std::string> names;
            for (const Device& device : self.devices) names.push_back(device.name);
            return names;
          },
          "Names of the devices, in order.")
      .def_prop_ro(
          "addresses",
          [](const Machine& self) {
            std::vector<std::string> addresses;
            for (const Device& device : self.devices) addresses.push_back(device.address);
            return addresses;
          },
          "host:port of each device, '' where the file names none.")
      .def_prop_ro(
          "memory",
          [](const Machine& self) {
            std::vector<std::int64_t> memory;
            for (const Device& device : self.devices) memory.push_back(device.capacity_bytes);
            return memory;
          },
          "Bytes of each device.");
}

}  // namespace pardnn::python
