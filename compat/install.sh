#!/usr/bin/env bash
# Installs what the compatibility suite needs, and says what it does:
#   kcat, a JDK (17 or newer), maven, python3-venv, npm,
#   xfsprogs, e2fsprogs                                 Debian packages, only where missing, only as root
#   Apache Kafka 4.4.0 (broker, tools, Java clients)     Maven Central, by compat/pom.xml, into the cache
#   Apache Kafka 4.1.2 and 3.9.2                         Maven Central, by compat/datadir/pom.xml, into the cache
#   confluent-kafka, kafka-python, aiokafka              PyPI, by compat/python/requirements.txt, into a venv in the cache
#   kafkajs, @platformatic/kafka, Node.js 22             npm, by compat/node/package-lock.json, into the cache
#   sarama, kafka-go, rdkafka                            Go's module proxy and crates.io, by compat/sarama/go.sum, compat/kafkago/go.sum and
#                                                        compat/rust/Cargo.lock; built into the cache with Go and cargo
#   the modules of franz-go and kafka-go, whole          Go's module proxy, by compat/suites/modules/go.sum and kafka-go.sum
#   the Java driver of the suite                         compiled from compat/java/ into the cache
#   Kafka Streams, file connectors, spring-kafka         Maven Central, by compat/java/applications/pom.xml; programs compiled
#
# The cache is ${OTTLA_CACHE:-$HOME/.cache/ottla}. Running it again does nothing: each step leaves a stamp that holds the
# checksum of what it was made from. `install.sh --java-only` does what the tools need and leaves out Python and kcat.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${OTTLA_CACHE:-$HOME/.cache/ottla}
mkdir -p "$cache"

say() { printf 'compat/install: %s\n' "$*"; }
die() { printf 'compat/install: %s\n' "$*" >&2; exit 1; }

# One installation at a time: several make targets may call this script together.
exec 9>"$cache/.install.lock"
flock 9

# again runs a command that downloads, up to four times: a registry may fail for a moment. What it says goes where the command's words go.
again() {
  local pause
  for pause in 5 20 60; do
    "$@" && return 0
    say "$1 failed; once more in $pause s"
    sleep "$pause"
  done
  "$@"
}

checksum() { cat "$@" | sha256sum | cut -c1-16; }

# stamped NAME SUM: whether step NAME was already done from sources with checksum SUM.
stamped() { [ -f "$cache/$1.stamp" ] && [ "$(cat "$cache/$1.stamp")" = "$2" ]; }

jdk_ok() {
  command -v javac >/dev/null && command -v java >/dev/null || return 1
  local version
  version=$(javac -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p')
  [ "${version:-0}" -ge 17 ]
}

venv_ok() { python3 -c 'import venv, ensurepip' >/dev/null 2>&1; }

install_packages() {
  local missing=()
  command -v kcat >/dev/null || missing+=(kcat)
  jdk_ok || missing+=(default-jdk-headless)
  command -v mvn >/dev/null || missing+=(maven)
  venv_ok || missing+=(python3 python3-venv)
  command -v npm >/dev/null || missing+=(npm)
  command -v cargo >/dev/null || missing+=(cargo)
  pkg-config --exists rdkafka 2>/dev/null || missing+=(pkg-config librdkafka-dev gcc libc6-dev)
  (PATH=$PATH:/usr/sbin:/sbin; command -v mkfs.xfs && command -v mkfs.ext4 && command -v losetup) >/dev/null || missing+=(xfsprogs e2fsprogs mount)
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "missing: ${missing[*]}. This is no Debian system: install their equivalents by hand, then run this again."
  [ "$(id -u)" = 0 ] || die "missing: ${missing[*]}. Run once as root:  apt-get update && apt-get install -y ${missing[*]}"
  say "apt-get install ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -q update >"$cache/apt.log" 2>&1 || say "apt-get update failed (see $cache/apt.log); trying with the lists that are here"
  again apt-get -q install -y --no-install-recommends "${missing[@]}" >>"$cache/apt.log" 2>&1 || {
    tail -20 "$cache/apt.log" >&2
    die "apt-get could not install ${missing[*]}"
  }
  jdk_ok || die "the JDK found is older than 17, which Apache Kafka 4.4.0 needs"
}

# install_jars copies Kafka's jars. They are put aside first, so that a broken download never looks finished.
install_jars() {
  local sum
  sum=$(checksum "$here/pom.xml")
  stamped kafka "$sum" && return 0
  say "Apache Kafka 4.4.0 from Maven Central into $cache/kafka (54 MB)"
  rm -rf "$cache/kafka" "$cache/kafka.part"
  again mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$cache/kafka.part" >"$cache/mvn.log" 2>&1 || {
    tail -20 "$cache/mvn.log" >&2
    die "mvn could not fetch the jars named in compat/pom.xml"
  }
  mv "$cache/kafka.part" "$cache/kafka"
  echo "$sum" >"$cache/kafka.stamp"
}

install_driver() {
  local sum
  sum=$(checksum "$here/pom.xml" "$here"/java/*.java)
  stamped driver "$sum" && return 0
  say "compiling compat/java into $cache/driver"
  rm -rf "$cache/driver" "$cache/driver.part"
  mkdir -p "$cache/driver.part"
  javac -nowarn -XDsuppressNotes -d "$cache/driver.part" -cp "$cache/kafka/*" "$here"/java/*.java
  mv "$cache/driver.part" "$cache/driver"
  echo "$sum" >"$cache/driver.stamp"
}

# install_applications brings Kafka Streams, the file connectors and spring-kafka, and compiles the suite's programs made of them.
install_applications() {
  local sum
  sum=$(checksum "$here/java/applications/pom.xml")
  stamped applications "$sum" || {
    say "Kafka Streams, connect-file, spring-kafka from Maven Central into $cache/applications (79 MB)"
    rm -rf "$cache/applications" "$cache/applications.part"
    again mvn -q -B -f "$here/java/applications/pom.xml" dependency:copy-dependencies -DoutputDirectory="$cache/applications.part" \
      >"$cache/mvn-applications.log" 2>&1 || {
      tail -20 "$cache/mvn-applications.log" >&2
      die "mvn could not fetch the jars named in compat/java/applications/pom.xml"
    }
    mv "$cache/applications.part" "$cache/applications"
    echo "$sum" >"$cache/applications.stamp"
  }
  sum=$(checksum "$here/java/applications/pom.xml" "$here"/java/*.java "$here"/java/applications/*.java)
  stamped programs "$sum" && return 0
  say "compiling compat/java/applications into $cache/programs"
  rm -rf "$cache/programs" "$cache/programs.part"
  mkdir -p "$cache/programs.part"
  javac -nowarn -XDsuppressNotes -d "$cache/programs.part" -cp "$cache/kafka/*:$cache/driver:$cache/applications/*" \
    "$here"/java/applications/*.java
  mv "$cache/programs.part" "$cache/programs"
  echo "$sum" >"$cache/programs.stamp"
}

# install_older brings the older versions of Apache Kafka whose directories are handed over, each with the tools and clients of its
# own, and compiles the program that runs them. What is compiled against the oldest runs on all.
install_older() {
  local sum version
  for version in 4.1.2 3.9.2; do
    sum=$version-$(checksum "$here/datadir/pom.xml")
    stamped "kafka-$version" "$sum" && continue
    say "Apache Kafka $version from Maven Central into $cache/kafka-$version (57 MB)"
    rm -rf "$cache/kafka-$version" "$cache/kafka-$version.part"
    again mvn -q -B -f "$here/datadir/pom.xml" -Dkafka.version="$version" dependency:copy-dependencies -DoutputDirectory="$cache/kafka-$version.part" \
      >"$cache/mvn-$version.log" 2>&1 || {
      tail -20 "$cache/mvn-$version.log" >&2
      die "mvn could not fetch the jars named in compat/datadir/pom.xml"
    }
    mv "$cache/kafka-$version.part" "$cache/kafka-$version"
    echo "$sum" >"$cache/kafka-$version.stamp"
  done
  sum=$(checksum "$here/datadir/pom.xml" "$here"/datadir/java/*.java)
  stamped handover "$sum" && return 0
  say "compiling compat/datadir/java into $cache/handover"
  rm -rf "$cache/handover" "$cache/handover.part"
  mkdir -p "$cache/handover.part"
  javac -nowarn -XDsuppressNotes --release 17 -d "$cache/handover.part" -cp "$cache/kafka-3.9.2/*" "$here"/datadir/java/*.java
  mv "$cache/handover.part" "$cache/handover"
  echo "$sum" >"$cache/handover.stamp"
}

install_venv() {
  local sum
  sum=$(checksum "$here/python/requirements.txt")
  stamped venv "$sum" && return 0
  say "confluent-kafka, kafka-python, aiokafka from PyPI into $cache/venv"
  rm -rf "$cache/venv"
  python3 -m venv "$cache/venv"
  again "$cache/venv/bin/pip" install -q --disable-pip-version-check -r "$here/python/requirements.txt" >"$cache/pip.log" 2>&1 || {
    tail -20 "$cache/pip.log" >&2
    die "pip could not install compat/python/requirements.txt"
  }
  echo "$sum" >"$cache/venv.stamp"
}

# install_node brings the Node.js clients, and with them the Node.js that runs them: Debian's is too old for one of them.
install_node() {
  local sum
  sum=$(checksum "$here/node/package.json" "$here/node/package-lock.json")
  stamped node "$sum" && return 0
  say "kafkajs, @platformatic/kafka and Node.js 22 from npm into $cache/node (200 MB)"
  rm -rf "$cache/node" "$cache/node.part"
  mkdir -p "$cache/node.part"
  cp "$here/node/package.json" "$here/node/package-lock.json" "$here/node/.npmrc" "$cache/node.part/"
  again npm ci --prefix "$cache/node.part" --ignore-scripts --no-audit --no-fund >"$cache/npm.log" 2>&1 || {
    tail -20 "$cache/npm.log" >&2
    die "npm could not install compat/node/package-lock.json"
  }
  mv "$cache/node.part" "$cache/node"
  "$cache/node/node_modules/.bin/node" --version >/dev/null || die "npm brought no Node.js that runs here: only Linux on amd64 and arm64 is provided for"
  echo "$sum" >"$cache/node.stamp"
}

# install_go_driver NAME builds compat/NAME, a module of its own, into the cache.
install_go_driver() {
  local sum
  sum=$(checksum "$here/$1"/go.* "$here/$1"/*.go "$here"/serve/*.go "$here"/suite/*.go)
  stamped "$1" "$sum" && return 0
  say "building compat/$1 into $cache/drivers"
  mkdir -p "$cache/drivers"
  (cd "$here/$1" && again go build -trimpath -o "$cache/drivers/$1" .)
  echo "$sum" >"$cache/$1.stamp"
}

# install_suites brings the modules whose own tests are run, and what they need, into Go's module cache.
install_suites() {
  local sum dir
  sum=$(checksum "$here"/suites/modules/go.* "$here"/suites/*.mod "$here"/suites/*.sum)
  stamped suites "$sum" && return 0
  say "franz-go and kafka-go with their tests, from Go's module proxy"
  (cd "$here/suites/modules" && again go mod download)
  dir=$(cd "$here/suites/modules" && go list -m -f '{{.Dir}}' github.com/twmb/franz-go)
  (cd "$dir" && go list -deps -test ./pkg/kgo >/dev/null)
  dir=$(cd "$here/suites/modules" && go list -m -f '{{.Dir}}' github.com/segmentio/kafka-go)
  (cd "$dir" && go list -modfile="$here/suites/kafka-go.mod" -deps -test ./... >/dev/null)
  echo "$sum" >"$cache/suites.stamp"
}

# install_rust builds compat/rust, which links Debian's librdkafka.
install_rust() {
  local sum
  sum=$(checksum "$here"/rust/Cargo.* "$here"/rust/src/*.rs)
  stamped rdkafka "$sum" && return 0
  say "building compat/rust into $cache/drivers"
  mkdir -p "$cache/drivers"
  again cargo build --locked --manifest-path "$here/rust/Cargo.toml" --target-dir "$cache/rust" >"$cache/cargo.log" 2>&1 || {
    tail -20 "$cache/cargo.log" >&2
    die "cargo could not build compat/rust"
  }
  cp "$cache/rust/debug/rdkafka-driver" "$cache/drivers/rdkafka.new"
  mv "$cache/drivers/rdkafka.new" "$cache/drivers/rdkafka" # one that runs cannot be written over
  echo "$sum" >"$cache/rdkafka.stamp"
}

if [ "${1:-}" = --java-only ]; then
  jdk_ok && command -v mvn >/dev/null || install_packages
else
  install_packages
  install_venv
  install_node
fi
if [ "${1:-}" != --java-only ]; then
  install_go_driver sarama
  install_go_driver kafkago
  install_rust
  install_suites
fi
install_jars
install_driver
install_older
install_applications
say "ready in $cache"
