#!/usr/bin/env bash
# Installs the system packages that are missing, with apt where that is possible; else names them and fails.
# usage: tools/system_packages.sh <python> [node | chromium]
set -eu
python=${1:-python3}
more=${2:-}
compiler=${CXX:-c++}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "Modelport needs Python 3.11 or newer, and $python is not. Name another one with: make PYTHON=python3.12" >&2
  exit 1
}
python_package=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
python_headers=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')

missing=()
need() {  # need <package> <command...>: the package is missing when the command fails
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
header() { printf '#include <%s>\n' "$1" | "$compiler" -std=c++20 -E -x c++ -; }

find_missing() {
  missing=()
  need g++ "$compiler" --version
  if ! "$compiler" --version >/dev/null 2>&1; then
    # Nothing can be probed without a compiler: name them all, what is there already costs nothing.
    missing+=(doctest-dev nlohmann-json3-dev libfmt-dev libminizip-dev zlib1g-dev libprotozero-dev libflatbuffers-dev)
  else
    need doctest-dev header doctest/doctest.h
    need nlohmann-json3-dev header nlohmann/json.hpp
    need libfmt-dev header fmt/format.h
    need libminizip-dev header minizip/unzip.h
    need zlib1g-dev header zlib.h
    need libprotozero-dev header protozero/pbf_writer.hpp
    need libflatbuffers-dev header flatbuffers/flatbuffers.h
  fi
  need "$python_package-dev" test -e "$python_headers/Python.h"
  need pkg-config pkg-config --version
  need flatbuffers-compiler command -p flatc --version  # the system's: executorch brings one of another version
  need "$python_package-venv" "$python" -c 'import ensurepip, venv'
  if [ -n "$more" ]; then
    need nodejs node --version
    need npm npm --version
  fi
  [ "$more" != chromium ] || need chromium chromium --version
}

find_missing
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo -n)
if command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; then
  echo "installing system packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" || true
  find_missing
  [ ${#missing[@]} -gt 0 ] || exit 0
fi
cat >&2 <<MESSAGE
Modelport needs system packages that are missing and that it could not install here (no apt, no root and no sudo, or
apt failed). By their Debian names: ${missing[*]}
Install them and run make again.
MESSAGE
exit 1
