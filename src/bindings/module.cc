// The compiled half of the Python package: the module pardnn._core.
#include <nanobind/nanobind.h>

NB_MODULE(_core, module) {
  module.attr("version") = PARDNN_VERSION;
}
