//! Real programs, each built from the same source for x86-64 and for x32 with the C library of the next Debian: on the
//! same inputs, both print the same bytes and end with the same status.
//!
//! `packaging/install.sh newer-libc` fetches the library and the sources that this list names.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::{copy, sources, sysroot, sysroot_options, two_at_a_time};

pub struct Real {
    pub name: &'static str,
    /// Debian's source package; none where the source is `tests/x32/real`.
    source: &'static str,
    /// Makes `$OUT`, for sh in a copy of the source, with `$CC`, `$CXX`, `configure`'s `$HOST`, and `$SOURCES` for all
    /// sources.
    build: &'static str,
    /// What is run, for sh in a folder with the program, `text` and `numbers`: `$RUN` is the runtime, or nothing.
    run: &'static str,
}

pub const PROGRAMS: [Real; 23] = [
    Real {
        name: "bzip2",
        source: "bzip2",
        build: "$CC -D_FILE_OFFSET_BITS=64 -o $OUT blocksort.c huffman.c crctable.c randtable.c compress.c decompress.c \
                bzlib.c bzip2.c",
        run: "$RUN ./bzip2 -vk text; $RUN ./bzip2 -tvv text.bz2; $RUN ./bzip2 -dc text.bz2 | cmp - text; \
              head -c 999 text.bz2 | $RUN ./bzip2 -d; cat text.bz2",
    },
    Real {
        name: "dash",
        source: "dash",
        build: "./configure -q --host=$HOST; make -s; cp src/dash $OUT",
        run: "cat >script <<'END'
trap 'echo usr1' USR1
trap 'echo end $?' EXIT
kill -USR1 $$
for i in 1 2 3; do (exit $i) || echo status $?; done
./dash -c 'echo child $0 $1; kill -9 $$' zero one; echo $?
sleep 5 & kill $!; wait $!; echo $?
seq 1000 | while read -r n; do [ $((n % 250)) -ne 0 ] || echo $n; done | sort -r | tr '\\n' ' '
x=$(cat text | wc -c); [ \"$x\" -gt 0 ] && echo counted
exec 3>out; echo three >&3; cat out; cat <<EOF
here $((6 * 7)) ${x:+set} ${y:-unset}
EOF
ulimit -n; umask; pwd | sed 's,.*/,,'; set -C; echo >out; echo $?; no-such-command; echo $?
END
$RUN ./dash script",
    },
    Real {
        name: "diff",
        source: "diffutils",
        build: "./configure -q --host=$HOST --disable-nls; make -s; cp src/diff $OUT",
        run: "sed '5d;s/the/THE/;20a new' text >other; $RUN ./diff -u --label a --label b text other; \
              $RUN ./diff -y -W 120 text other; $RUN ./diff -r . no; $RUN ./diff -q text numbers",
    },
    Real {
        name: "ed",
        source: "ed",
        build: "$CC -DPROGVERSION='\"1\"' -D_FILE_OFFSET_BITS=64 -o $OUT *.c",
        run: "printf '%s\\n' 'r !echo from a shell' '1,5n' 'g/e/s//E/g' '1,5p' '!echo shell' 'w !wc -l' '2,3m0' '1,9l' u 1p Q |\
              $RUN ./ed -s text; printf 'x\\nq\\n' | $RUN ./ed numbers",
    },
    Real {
        name: "grep",
        source: "grep",
        build: "./configure -q --host=$HOST --disable-nls --disable-perl-regexp; make -s; cp src/grep $OUT",
        run: "$RUN ./grep -nE '(a|b)c*d?[^ ]{2,4}' text; $RUN ./grep -c 7 numbers; $RUN ./grep -o '\\([0-9]\\)\\1' numbers; \
              $RUN ./grep -rlF 99 numbers text; $RUN ./grep '[' text; head -c 300 grep | $RUN ./grep -ac .",
    },
    Real {
        name: "gzip",
        source: "gzip",
        build: "./configure -q --host=$HOST; make -s; cp gzip $OUT",
        run: "for level in 1 6 9; do $RUN ./gzip -n$level <text; done; $RUN ./gzip -nkv text; $RUN ./gzip -tv text.gz; \
              $RUN ./gzip -l text.gz; $RUN ./gzip -dc text.gz | cmp - text; head -c 99 text.gz | $RUN ./gzip -d",
    },
    Real {
        name: "jq",
        source: "jq",
        build: "sed -e 's/\\\\/\\\\\\\\/g' -e 's/\"/\\\\\"/g' -e 's/^/\"/' -e 's/$/\\\\n\"/' src/builtin.jq >src/builtin.inc
                echo '#define JQ_VERSION \"1.6\"' >src/version.h
                rm src/inject_errors.c
                $CC -D_GNU_SOURCE -DIEEE_8087 -DHAVE_MKSTEMP -DHAVE_TIMEGM -DHAVE_GMTIME_R -DHAVE_STRPTIME -DHAVE_STRFTIME \
                    -DHAVE_TM_TM_GMT_OFF -DHAVE_SIN -DHAVE_FLOOR -DHAVE_SQRT -DHAVE_POW -DHAVE_LOG -DHAVE_LOG2 -DHAVE_EXP \
                    -DHAVE_EXP10 -I. -pthread -o $OUT src/*.c -lm",
        run: "$RUN ./jq -s 'add, length, (map(sqrt) | add), (group_by(. % 7) | map(length)), (.[5] | todate)' numbers; \
              $RUN ./jq -R 'ascii_downcase | split(\" \") | map(length)' text; echo '{\"a\": [1e999, \"\\u00e9\", null' | $RUN ./jq .",
    },
    Real {
        name: "lua",
        source: "lua5.4",
        build: ": >src/lua5.4-deb-multiarch.h; rm src/luac.c; $CC -DLUA_USE_LINUX -o $OUT src/*.c -Wl,-E -lm -ldl",
        run: "cat >script <<'END'
local pipe = io.popen('echo from popen; exit 3'); print(pipe:read('a'), pipe:close())
print(os.execute('exit 4')); print(os.execute('kill -9 $$')); print(os.execute())
local words = {}; for line in io.lines('text') do for word in line:gmatch('%a+') do words[word] = (words[word] or 0) + 1 end end
local order = {}; for word in pairs(words) do order[#order + 1] = word end; table.sort(order)
for _, word in ipairs(order) do io.write(word, ' ', words[word], '\\n') end
print(string.format('%a %.17g %q', 1 / 3, math.pi, 'x\\n\\0'), math.maxinteger + 1, 7 // -2, -7 % 3, 2 ^ 0.5)
print(pcall(error, {1}), select('#', table.unpack({}, 1, 200)), coroutine.wrap(function () coroutine.yield(1) end)())
print(os.date('!%c', 86400 * 365), os.time { year = 2024, month = 2, day = 30, hour = 0 }, os.getenv('NOT'))
local file = io.tmpfile(); file:setvbuf('full', 10); file:write(('x'):rep(1000)); file:seek('set', 990); print(file:read('a'))
error('the end')
END
$RUN ./lua script",
    },
    Real {
        name: "lz4",
        source: "lz4",
        build: "$CC -Ilib -o $OUT lib/*.c programs/*.c",
        run: "$RUN ./lz4 -9 <text; $RUN ./lz4 -qk -BD text; $RUN ./lz4 -t text.lz4; $RUN ./lz4 -dc text.lz4 | cmp - text; \
              head -c 99 text.lz4 | $RUN ./lz4 -dc",
    },
    Real {
        name: "lzip",
        source: "lzip",
        build: "$CXX -DPROGVERSION='\"1\"' -o $OUT *.cc",
        run: "$RUN ./lzip -k text; $RUN ./lzip -tvv text.lz; $RUN ./lzip -l text.lz; $RUN ./lzip -dc text.lz | cmp - text; cat text.lz; \
              head -c 99 text.lz | $RUN ./lzip -d",
    },
    Real {
        name: "mawk",
        source: "mawk",
        build: "./configure -q --host=$HOST; make -s; cp mawk $OUT",
        run: "cat >script <<'END'
{ for (i = 1; i <= NF; i++) count[$i]++; bytes += length($0) }
END {
    for (word in count) print count[word], word | \"LC_ALL=C sort -rn\"
    close(\"LC_ALL=C sort -rn\")
    while ((\"seq 3\" | getline line) > 0) sum += line
    print NR, bytes, sum, system(\"exit 5\"), system(\"kill -9 $$\"), substr(\"middle\", 2, 3), sin(1), exp(1), int(-3.7), 2 ^ 40
    printf \"%s %d %x %5.2f %e %c\\n\", \"a\", 2147483647, 255, 3.14159, 1e10, 65
    exit 7
}
END
$RUN ./mawk -f script text; $RUN ./mawk 'BEGIN { print length(' 2>&1",
    },
    Real {
        name: "minigzip",
        source: "zlib",
        build: "$CC -D_LARGEFILE64_SOURCE=1 -DHAVE_UNISTD_H -I. -o $OUT *.c test/minigzip.c",
        run: "$RUN ./minigzip -9 <text; $RUN ./minigzip <numbers >n.gz; $RUN ./minigzip -d <n.gz | cmp - numbers; gzip -t n.gz; \
              head -c 99 n.gz | $RUN ./minigzip -d",
    },
    Real {
        name: "mujs",
        source: "mujs",
        build: "$CC -o $OUT one.c main.c -lm",
        run: "cat >script <<'END'
var words = read('text').split(/\\W+/), counts = {}
for (var i in words) counts[words[i]] = (counts[words[i]] | 0) + 1
print(JSON.stringify(Object.keys(counts).sort()), 0.1 + 0.2, 1 / 3, Math.pow(2, 0.5), (255).toString(36), 1e21, -7 % 3)
print(new Date(0).toISOString(), 'aXbX'.replace(/X/g, function (m, at) { return at }), [3, 1, 2].sort(), parseInt('0x1f'))
try { (function f() { f() })() } catch (error) { print(error) }
missing()
END
$RUN ./mujs script",
    },
    Real {
        name: "ninja",
        source: "ninja-build",
        build: "cd src
                $CXX -pthread -o $OUT $(ls *.cc | grep -vE 'test|win32|browse|bench|in\\.cc|msvc')",
        run: "cat >build.ninja <<'END'
rule upper
  command = tr a-z A-Z <$in >$out
rule fail
  command = echo failed; exit 3
rule die
  command = kill -9 $$$$
build upper: upper text
build again: upper upper
build failed: fail numbers
build died: die numbers
END
$RUN ./ninja -j1 -v again; cat again; $RUN ./ninja -j1 again; $RUN ./ninja -j1 -k0 failed died; $RUN ./ninja -t query again; $RUN ./ninja -t commands again; \
              $RUN ./ninja none",
    },
    Real {
        name: "patch",
        source: "patch",
        build: "./configure -q --host=$HOST --disable-nls; make -s; cp src/patch $OUT",
        run: "sed '5d;s/the/THE/;20a new' text >other; diff -u --label a --label b text other >change; $RUN ./patch text change; cmp text other; \
              $RUN ./patch -R text change; sed -i '1,3s/^/!/' text; $RUN ./patch --verbose text change; cat text*",
    },
    Real {
        name: "pbzip2",
        source: "pbzip2",
        build: "for part in blocksort huffman crctable randtable compress decompress bzlib; do $CC -c $SOURCES/bzip2/$part.c; done
                $CXX -pthread -I$SOURCES/bzip2 -D_FILE_OFFSET_BITS=64 -DUSE_STACKSIZE_CUSTOMIZATION -o $OUT *.cpp *.o",
        run: "for i in 1 2 3 4 5 6 7 8; do cat numbers text; done >much; $RUN ./pbzip2 -k -p4 -b1 -m20 much; $RUN ./pbzip2 -t -p4 much.bz2; \
              $RUN ./pbzip2 -dc -p4 much.bz2 | cmp - much; bzip2 -t much.bz2; cksum much.bz2",
    },
    Real {
        name: "sed",
        source: "sed",
        build: "./configure -q --host=$HOST --disable-nls --disable-acl; make -s; cp sed/sed $OUT",
        run: "$RUN ./sed -n '/e/{s//[&]/2gp;=}' text; $RUN ./sed -E 's/(.*) (.*)/\\2 \\1/;1!G;h;$!d' text; $RUN ./sed -i '3e echo from a shell' text; \
              $RUN ./sed '2w out' numbers | tail -n 2; cat out text; $RUN ./sed 's/(/' text; $RUN ./sed p none",
    },
    Real {
        name: "tree",
        source: "tree",
        build: "$CC -D_FILE_OFFSET_BITS=64 -o $OUT *.c",
        run: "mkdir -p a/b/c; echo x >a/b/file; ln -s ../a a/link; chmod 750 a/b; $RUN ./tree -a a; $RUN ./tree -Jpsl a; $RUN ./tree -X none",
    },
    Real {
        name: "xxhsum",
        source: "xxhash",
        build: "$CC -o $OUT xxhash.c cli/*.c",
        run: "for kind in 0 1 2 3; do $RUN ./xxhsum -H$kind text numbers; done >sums; cat sums; head -n 2 sums | $RUN ./xxhsum -c; \
              $RUN ./xxhsum none",
    },
    Real {
        name: "zstd",
        source: "libzstd",
        build: "$CC -pthread -DZSTD_MULTITHREAD -DZSTD_DISABLE_ASM -DZSTD_LEGACY_SUPPORT=0 -DBACKTRACE_ENABLE=0 -Ilib -Ilib/common -o $OUT \
                lib/common/*.c lib/compress/*.c lib/decompress/*.c lib/dictBuilder/*.c programs/*.c",
        run: "for level in 1 7; do $RUN ./zstd -q -T1 -$level <text; done; for i in 1 2 3 4 5 6 7 8; do cat numbers text; done >much; \
              $RUN ./zstd -q -T3 -B512K much; cksum much.zst; $RUN ./zstd -dc much.zst | cmp - much; \
              head -c 99 much.zst | $RUN ./zstd -dc; $RUN ./zstd -q --train text numbers -B200 --maxdict=2000; cksum dictionary",
    },
    Real {
        name: "spawning",
        source: "",
        build: "$CC -Wall -o $OUT spawning.c",
        run: "$RUN ./spawning",
    },
    Real {
        name: "concurrent",
        source: "",
        build: "$CXX -std=gnu++17 -pthread -o $OUT concurrent.cc",
        run: "$RUN ./concurrent",
    },
    Real {
        name: "library",
        source: "",
        build: "$CC -Wall -o $OUT library.c -lm",
        run: "$RUN ./library",
    },
];

/// A folder for an ABI's programs.
fn folder(abi: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("x32-real").join(abi)
}

/// Where `packaging/install.sh newer-libc` puts sources.
fn downloaded() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("../x32-sources")
}

fn source(program: &Real) -> PathBuf {
    if program.source.is_empty() {
        return sources().join("real");
    }
    downloaded().join(program.source)
}

const ABIS: [&str; 2] = ["x86-64", "x32"];

/// Builds one for one ABI, unless it has been built in this way from this source.
fn build(program: &Real, abi: &str) {
    let (folder, source) = (folder(abi), source(program));
    let options = match (abi, sysroot()) {
        ("x32", Some(root)) => [
            vec!["-mx32".to_owned(), "-idirafter/usr/include/x86_64-linux-gnu".to_owned()],
            sysroot_options(&root, true),
        ]
        .concat()
        .join(" "),
        ("x32", None) => "-mx32 -idirafter/usr/include/x86_64-linux-gnu".to_owned(),
        _ => String::new(),
    };
    let changed = |entry: std::io::Result<std::fs::DirEntry>| entry?.metadata()?.modified();
    let own = program.source.is_empty().then(|| std::fs::read_dir(&source).unwrap());
    let newest = own.and_then(|files| files.map(|entry| changed(entry).unwrap()).max());
    let (out, stamp) = (folder.join(program.name), folder.join(format!("{}.built", program.name)));
    let way = format!("{options}\n{}\n{newest:?}\n", program.build);
    if std::fs::read_to_string(&stamp).is_ok_and(|built| built == way) {
        return;
    }
    let place = folder.join("build").join(program.name);
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    let copied = Command::new("cp").arg("-a").arg(&source).arg(&place).status().unwrap();
    assert!(copied.success(), "{} is missing: run `sh packaging/install.sh newer-libc`", source.display());
    let done = Command::new("sh")
        .args(["-eu", "-c", program.build])
        .current_dir(&place)
        .env("CC", format!("gcc -O1 -w {options}"))
        .env("CXX", format!("g++ -O1 -w {options}"))
        .env("HOST", if abi == "x32" { "x86_64-linux-gnux32" } else { "x86_64-linux-gnu" })
        .env("OUT", &out)
        .env("SOURCES", downloaded())
        .output()
        .unwrap();
    assert!(done.status.success(), "{} for {abi}: {}", program.name, String::from_utf8_lossy(&done.stderr));
    std::fs::write(stamp, way).unwrap();
}

/// Builds all of them, two at a time.
pub fn build_all(programs: &[&Real]) {
    let builds = programs.iter().flat_map(|program| ABIS.map(|abi| (program, abi)));
    two_at_a_time(builds, |(program, abi)| build(program, abi));
}

/// What one prints and how it ends, built for x86-64, and for x32 through the runtime.
pub fn printed(program: &Real, runtime: &Path) -> [String; 2] {
    ABIS.map(|abi| {
        let temporary = tempfile::tempdir().unwrap();
        // Of the same name for both, since some print it.
        let place = temporary.path().join("place");
        std::fs::create_dir(&place).unwrap();
        copy(&folder(abi).join(program.name), &place.join(program.name));
        // Bytes that differ between two checkouts would do no harm: both ABIs are given the same.
        copy(&sources().join("../../docs/x32.md"), &place.join("text"));
        let numbers: String = (1..=20_000).map(|number| format!("{}\n", number * 7919 % 20_011)).collect();
        std::fs::write(place.join("numbers"), numbers).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{{ {}\n}} 2>&1", program.run)]).current_dir(&place);
        command.env("LC_ALL", "C").env("TZ", "UTC0").env("RUN", "");
        if abi == "x32" {
            command.env("RUN", runtime);
            if let Some(root) = sysroot() {
                command.env("GCONV_PATH", root.join("usr/libx32/gconv"));
            }
        }
        let output = command.output().unwrap();
        format!("{}-- {}\n", String::from_utf8_lossy(&output.stdout), output.status)
    })
}
