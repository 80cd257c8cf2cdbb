#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds etcd, kube-apiserver, kube-controller-manager and kubectl from the versions that go.mod
# beside this file pins, and links them into bin/controlplane of the repository.
#
# The programs themselves live in a cache shared by all clones of one user, under a key made of
# everything that decides their content; a second run, or another clone, builds nothing.
# Programs found in KUBEBUILDER_ASSETS are taken from there instead.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
links=$(cd "$here/../.." && pwd)/bin/controlplane
cd "$here"

package_of() {
  case $1 in
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    *) echo "k8s.io/kubernetes/cmd/$1" ;;
  esac
}

kubernetes=$(awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ {print $2; exit}' go.mod)
IFS=. read -r major minor _ <<<"${kubernetes#v}"
stamp=k8s.io/component-base/version
ldflags="-s -w -X $stamp.gitVersion=$kubernetes -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor -X $stamp.gitTreeState=clean"

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }

key=$({ cat go.mod go.sum; echo "$ldflags"; go env GOVERSION GOOS GOARCH; } | sha256 | cut -c1-16)
cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/metalaw/controlplane/$key
{ mkdir -p "$cache" && [ -w "$cache" ]; } 2>/dev/null || cache=$links.cache/$key
mkdir -p "$cache" "$links"

# One builder at a time; the others find its result. Without flock the work is done twice at worst.
if command -v flock >/dev/null; then
  exec 9>"$cache/.lock"
  flock 9
fi

build() { # program -> $cache/program, which is whole or not there
  local started=$SECONDS staging
  staging=$(mktemp -d "$cache/.build.XXXXXX")
  echo "control plane: building $1 (once on this machine; all four take about five minutes) ..."
  CGO_ENABLED=0 go build -mod=readonly -trimpath -buildvcs=false -ldflags "$ldflags" -o "$staging/$1" "$(package_of "$1")"
  mv -f "$staging/$1" "$cache/$1"
  rmdir "$staging"
  echo "control plane: built $1 in $((SECONDS - started)) s"
}

for program in etcd kubectl kube-controller-manager kube-apiserver; do
  if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$program" ]; then
    source=$KUBEBUILDER_ASSETS/$program
  else
    [ -x "$cache/$program" ] || build "$program"
    source=$cache/$program
  fi
  [ "$(readlink "$links/$program" || true)" = "$source" ] || ln -sfn "$source" "$links/$program"
done
