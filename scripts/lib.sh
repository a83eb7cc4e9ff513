# shellcheck shell=bash
# Functions that quickstart, test and the scripts share. Sourced by bash with `set -euo pipefail` in force and `root` set.
: "${root:?}"

say() { printf '\n== %s\n' "$*" >&2; }
note() { printf '   %s\n' "$*" >&2; }
die() {
  printf '\nerror: %s\n' "$*" >&2
  exit 1
}

# Runs a command as root: directly, or through sudo without a question on the terminal.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    sudo -n "$@" </dev/null
  fi
}

# Packages of the named groups of scripts/packages.txt that this machine lacks, one a line. A package that another one
# provides is there: Node's own packages, say, bring npm.
missing_packages() {
  local group package provided
  provided=$(dpkg-query -W -f '${db:Status-Status}, ${Provides}\n' | sed -n 's/^installed, //p' | tr ',' '\n' | awk '{ print $1 }')
  for group in "$@"; do
    while read -r package; do
      if ! dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed; then
        grep -qxF "$package" <<<"$provided" || echo "$package"
      fi
    done < <(awk -v group="$group" '$1 == group { print $2 }' "$root/scripts/packages.txt")
  done | sort -u
}

# Installs what is missing of the named groups. Needs no network, no root and no time when nothing is missing.
install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    note "this is not Debian; taking it that what scripts/packages.txt lists is there"
    return
  fi
  local -a missing
  mapfile -t missing < <(missing_packages "$@")
  if [ "${#missing[@]}" -eq 0 ]; then
    note "all Debian packages for $* are there"
    return
  fi
  say "Installing Debian packages: ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      die "installing packages needs root and there is no sudo. As root, run: apt-get install ${missing[*]}"
    sudo -n true </dev/null 2>/dev/null || { [ -t 0 ] && sudo -v; } ||
      die "sudo wants a password. As root, run: apt-get install ${missing[*]}"
  fi
  local -a apt=(env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=300)
  as_root "${apt[@]}" update </dev/null >&2 || note "apt-get update failed; trying with the lists that are there"
  as_root "${apt[@]}" install --no-install-recommends "${missing[@]}" </dev/null >&2 ||
    die "apt-get could not install: ${missing[*]}"
}

# How many compilers to run at once: one a core, and no more than one for each 1.5 GB of memory.
build_jobs() {
  local cores memory_kb jobs
  cores=$(nproc)
  memory_kb=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
  jobs=$((memory_kb / 1500000))
  [ "$jobs" -ge 1 ] || jobs=1
  [ "$jobs" -le "$cores" ] || jobs=$cores
  echo "$jobs"
}

# Another checkout's objects serve here too: ccache sees paths relative to the checkout.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}

# configure PRESET [-DNAME=VALUE...]: sets build/PRESET up, unless it is so already. ccache is used where it is.
configure() {
  local preset=$1 option
  shift
  local -a launcher=()
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  local cache=$root/build/$preset/CMakeCache.txt ready=yes
  [ -f "$root/build/$preset/build.ninja" ] || ready=no
  for option in "$@"; do
    option=${option#-D}
    grep -q "^${option%%=*}:[A-Z]*=${option#*=}\$" "$cache" 2>/dev/null || ready=no
  done
  if [ "$ready" = no ]; then
    (cd "$root" && cmake --preset "$preset" "${launcher[@]}" "$@" </dev/null >&2)
  fi
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  local -a targets=()
  [ "$#" -eq 0 ] || targets=(--target "$@")
  (cd "$root" && cmake --build --preset "$preset" --parallel "$(build_jobs)" "${targets[@]}" </dev/null >&2)
}
