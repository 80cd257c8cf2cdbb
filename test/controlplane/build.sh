#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Links etcd, kube-apiserver, kubectl and the program of ./controllers into bin/controlplane of the repository.
# The first three come from the first of these that has them:
#
#   1. KUBEBUILDER_ASSETS;
#   2. the release of envtest that setup-envtest downloads;
#   3. a build of the versions that go.mod beside this file pins.
#
# The programs themselves live in a cache shared by all clones of one user, under a key made of
# everything that decides their content; a second run, or another clone, downloads and builds nothing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
links=$(cd "$here/../.." && pwd)/bin/controlplane
cd "$here"

package_of() {
  case $1 in
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    controllers) echo ./controllers ;;
    *) echo "k8s.io/kubernetes/cmd/$1" ;;
  esac
}

kubernetes=$(awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ {print $2; exit}' go.mod)
IFS=. read -r major minor _ <<<"${kubernetes#v}"
stamp=k8s.io/component-base/version
ldflags="-s -w -X $stamp.gitVersion=$kubernetes -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor -X $stamp.gitTreeState=clean"

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }

key=$({ cat go.mod go.sum controllers/*.go; echo "$ldflags"; go env GOVERSION GOOS GOARCH; } | sha256 | cut -c1-16)
cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/metalaw/controlplane/$key
{ mkdir -p "$cache" && [ -w "$cache" ]; } 2>/dev/null || cache=$links.cache/$key
mkdir -p "$cache" "$links"

# One builder at a time; the others find its result. Without flock the work is done twice at worst.
if command -v flock >/dev/null; then
  exec 9>"$cache/.lock"
  flock 9
fi

build() { # program -> $cache/program, which is whole or not there
  local staging
  staging=$(mktemp -d "$cache/.build.XXXXXX")
  CGO_ENABLED=0 ../../.ci/go-build "control plane: $1" -mod=readonly -trimpath -buildvcs=false -ldflags "$ldflags" \
    -o "$staging/$1" -- "$(package_of "$1")"
  mv -f "$staging/$1" "$cache/$1"
  rmdir "$staging"
}

# download gets the programs of the release, and says why where it cannot. A closed network answers at once or never.
download() {
  local found
  if found=$(cd "$here/../tools" && timeout 300 go tool setup-envtest use "$major.$minor.x" --bin-dir "$cache/envtest" -p path 2>"$cache/.download"); then
    echo "control plane: etcd, kube-apiserver and kubectl are those of the envtest release in $(basename "$found")"
    for program in etcd kubectl kube-apiserver; do
      [ ! -x "$found/$program" ] || ln -sfn "$found/$program" "$cache/$program"
    done
  else
    echo "control plane: the envtest release cannot be downloaded ($(tail -c 200 "$cache/.download" | tr '\n' ' ')); it is built instead"
  fi
}

assets() { # program: is it that of KUBEBUILDER_ASSETS?
  [ "$1" != controllers ] && [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$1" ]
}

# wanted lists the programs that are neither given nor in the cache.
wanted() {
  local program
  for program in "${programs[@]}"; do
    assets "$program" || [ -x "$cache/$program" ] || printf '%s ' "$program"
  done
}

# kube-apiserver has nearly all packages of the controllers, so they come after it.
programs=(etcd kubectl kube-apiserver controllers)
case " $(wanted)" in *" etcd "* | *" kubectl "* | *" kube-apiserver "*) download ;; esac

started=$SECONDS missing=$(wanted)
case $missing in
  "") ;;
  *kube-apiserver*) echo "control plane: building ${missing% }, once on this machine: about six minutes on two idle cores" ;;
  *) echo "control plane: building ${missing% }, once on this machine" ;;
esac
for program in "${programs[@]}"; do
  if assets "$program"; then
    source=$KUBEBUILDER_ASSETS/$program
    [ "$(readlink "$links/$program" || true)" = "$source" ] || echo "control plane: $program is that of KUBEBUILDER_ASSETS"
  else
    [ -x "$cache/$program" ] || build "$program"
    source=$cache/$program
  fi
  [ "$(readlink "$links/$program" || true)" = "$source" ] || ln -sfn "$source" "$links/$program"
done
[ -z "$missing" ] || echo "control plane: ready after $((SECONDS - started)) s"
