// PythonSite: while one lives, errors and graph nodes belong to the line of Python that called us.
#pragma once

#include <string>

#include "weft/base/call_site.h"

namespace weft::python {

/// The innermost line of Python outside of this package; needs the GIL.
CallSite python_call_site();

/// Where the Python files of this package are.
void set_package_folder(std::string folder);

class PythonSite {
 public:
  PythonSite() : scope_(python_call_site()) {}

 private:
  CallSiteScope scope_;
};

}  // namespace weft::python
