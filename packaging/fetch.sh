# shellcheck shell=sh
# What a `make` word needs from Debian's archive besides installed packages: kernels, C libraries, systems and sources. They
# go into the build folder; nothing is installed. Read by install.sh, whose as_root and update_indexes it uses.

# Debian's kernel has x32 built in (booted with syscall.x32=y): the oracle of the x32 runtime runs it under emulation.
# Only the kernel itself is taken out of the package, into the build folder; nothing is installed.
fetch_x32_kernel() {
    folder=${CARGO_TARGET_DIR:-target}/x32-kernel
    for kernel in "$folder"/boot/vmlinuz-*; do
        [ ! -s "$kernel" ] || return 0
    done
    image=$(apt-cache depends linux-image-amd64 2>/dev/null |
        sed -n 's/^ *Depends: \(linux-image-[0-9].*-amd64\)$/\1/p' | head -n 1)
    if [ -z "$image" ]; then
        echo "error: no package linux-image-amd64 in this system's indexes, whose kernel has x32: put" >&2
        echo "    boot/vmlinuz-* of Debian 12's linux-image-6.1.0-*-amd64 into $folder" >&2
        exit 1
    fi
    echo "fetching $image, to boot under emulation"
    rm -rf "$folder.new"
    mkdir -p "$folder.new"
    # An index older than the mirror names a file that is no longer there.
    (cd "$folder.new" && apt-get download -qq "$image" 2>/dev/null) || {
        update_indexes
        (cd "$folder.new" && apt-get download -qq "$image")
    }
    dpkg-deb --fsys-tarfile "$folder.new"/*.deb | tar -x -C "$folder.new" --wildcards './boot/vmlinuz-*'
    rm -f "$folder.new"/*.deb
    rm -rf "$folder"
    mv "$folder.new" "$folder"
}

# private_apt FOLDER deb|deb-src SUITE: an apt with lists of its own in that folder, for `apt-get $private`: neither apt's
# configuration nor the system changes.
private_apt() {
    mkdir -p "$1/apt/lists/partial" "$1/apt/cache/archives/partial"
    apt=$(cd "$1/apt" && pwd)
    echo "$2 [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $3 main" \
        >"$apt/sources.list"
    : >"$apt/status"
    private="-o Dir::Etc::SourceList=$apt/sources.list -o Dir::Etc::SourceParts=/dev/null
        -o Dir::State::Lists=$apt/lists -o Dir::State::status=$apt/status -o Dir::Cache=$apt/cache"
}

# newer FOLDER PACKAGES: unpacks packages of the next Debian, by an apt of their own; nothing is installed. Of
# linux-image-amd64 it is the kernel on which that depends.
newer() {
    folder=$1
    shift
    rm -rf "$folder.new"
    mkdir -p "$folder.new/root"
    private_apt "$folder.new" deb trixie
    # shellcheck disable=SC2086 # a list of options
    (cd "$apt" && apt-get $private update -qq -o APT::Update::Error-Mode=any && for package; do
        if [ "$package" = linux-image-amd64 ]; then
            package=$(apt-cache $private depends "$package" |
                sed -n 's/^ *Depends: \(linux-image-[0-9].*-amd64\)$/\1/p' | head -n 1)
        fi
        apt-get $private download -qq "$package" || exit 1
    done) || {
        rm -rf "$folder.new"
        echo "error: Debian's archive of trixie cannot be reached" >&2
        exit 1
    }
    for package in "$apt"/*.deb; do
        dpkg-deb -x "$package" "$folder.new/root"
    done
    rm -rf "$folder"
    mv "$folder.new/root" "$folder"
    rm -rf "$folder.new"
}

# The next Debian with its compilers, as a system of its own in the build folder, entered by chroot.
fetch_trixie() {
    folder=${CARGO_TARGET_DIR:-target}/trixie
    [ ! -e "$folder/complete" ] || return 0
    echo "fetching a system of trixie, of some 1.5 GiB, into $folder"
    as_root rm -rf "$folder"
    as_root debootstrap --variant=minbase --include=g++-13,clang-17,clang-18,cmake,make trixie "$folder" \
        http://deb.debian.org/debian >"$folder.log" 2>&1 || {
        tail -n 3 "$folder.log" >&2
        echo "error: no system of trixie could be made from Debian's archive; $folder.log says why" >&2
        exit 1
    }
    as_root touch "$folder/complete"
}

fetch_newer_libc() {
    folder=${CARGO_TARGET_DIR:-target}/x32-newer-libc
    [ ! -e "$folder/usr/libx32/libc.so.6" ] || return 0
    newer "$folder" libc6-x32 libc6-dev-x32 libc6-dev linux-libc-dev libx32gcc-s1 libx32stdc++6
    # The linker scripts name /libx32.
    ln -sfn usr/libx32 "$folder/libx32"
}

# Of which IA32_EMULATION can be switched off on the command line, since Linux 6.7.
fetch_newer_kernel() {
    folder=${CARGO_TARGET_DIR:-target}/x32-newer-kernel
    for kernel in "$folder"/boot/vmlinuz-*; do
        [ ! -s "$kernel" ] || return 0
    done
    newer "$folder" linux-image-amd64
    # Its modules are not used.
    rm -rf "${folder:?}/usr" "${folder:?}/lib"
}

# musl for x32, static, from Debian's source.
build_musl() {
    folder=${CARGO_TARGET_DIR:-target}/x32-musl
    [ ! -e "$folder/lib/libc.a" ] || return 0
    rm -rf "$folder.new"
    private_apt "$folder.new" deb-src bookworm
    # shellcheck disable=SC2086 # a list of options
    (cd "$apt" && apt-get $private update -qq -o APT::Update::Error-Mode=any && apt-get $private source -qq musl) || {
        rm -rf "$folder.new"
        echo "error: Debian's archive cannot be reached" >&2
        exit 1
    }
    (cd "$apt"/musl-*/ && CC="gcc -mx32" ./configure --prefix=/ --target=x86_64-linux-muslx32 --disable-shared >configured &&
        make -s -j2 AR=ar RANLIB=ranlib CROSS_COMPILE= DESTDIR="$apt/root" install >built 2>&1) || {
        echo "error: musl does not build; see $apt/musl-*/built" >&2
        exit 1
    }
    # The kernel's headers, and nothing else of the system's.
    mkdir "$apt/root/kernel"
    ln -s /usr/include/linux /usr/include/asm-generic /usr/include/x86_64-linux-gnu/asm "$apt/root/kernel"
    rm -rf "$folder"
    mv "$apt/root" "$folder"
    rm -rf "$folder.new"
}

# The sources of the programs that tests/x32/real.rs lists, as they were before Debian's patches: those touch what
# `configure` is made from, and it would have to be made again.
fetch_x32_sources() {
    folder=${CARGO_TARGET_DIR:-target}/x32-sources
    absent=""
    for source in $(sed -n 's/^ *source: "\(..*\)",$/\1/p' tests/x32/real.rs | sort -u); do
        [ -d "$folder/$source" ] || absent="$absent $source"
    done
    [ -n "$absent" ] || return 0
    mkdir -p "$folder"
    private_apt "$folder" deb-src bookworm
    # shellcheck disable=SC2086 # lists of options and of names
    (cd "$apt" && apt-get $private update -qq -o APT::Update::Error-Mode=any &&
        apt-get $private source -qq --download-only $absent && for source in $absent; do
        dpkg-source --no-check --skip-patches -x "$source"_*.dsc new >unpacked 2>&1 && mv new "../$source" || exit 1
    done) || {
        echo "error: Debian's archive cannot be reached" >&2
        exit 1
    }
}
