// The compiled half of the Python package: the module pardnn._core.
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "pardnn/base/error.h"
#include "pardnn/base/version.h"

#include "bindings.h"

namespace nb = nanobind;

NB_MODULE(_core, module) {
  module.attr("version") = std::string(pardnn::kPardnnVersion);
  // Named after the package, as messages of uncaught ones show it.
  nb::exception<pardnn::Error>(module, "Error", PyExc_ValueError).attr("__module__") = "pardnn";
  pardnn::python::add_graph(module);
  pardnn::python::add_machine(module);
  pardnn::python::add_plan(module);
  pardnn::python::add_planning(module);
}
