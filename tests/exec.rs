//! `exec`: an x32 program runs here on any kernel, and its surroundings are as if the kernel had started
//! it. `oracle.rs` compares the results of its system calls with those of a kernel with x32.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use crate::laboratory::outcomes::skipped;
use crate::laboratory::{output_of, CommandOutput, Laboratory, NOBODY};

const X32: &str = "-mx32 -idirafter /usr/include/x86_64-linux-gnu -O1";

const TELLS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
    printf("%d bytes\n", (int)sizeof(void *));
    for (int i = 0; i < count; i++)
        printf("word %d: %s\n", i, words[i]);
    printf("TOLD=%s\n", getenv("TOLD") ? getenv("TOLD") : "");
    return 7;
}
"#;

/// A laboratory with the program `tells`, static or dynamic.
fn lab(options: &str) -> Laboratory {
    let lab = Laboratory::new();
    lab.write("tells.c", TELLS);
    lab.gcc(&format!("{X32} {options} tells.c -o tells"));
    lab
}

fn exec(lab: &Laboratory, arguments: &str) -> CommandOutput {
    output_of(lab.command(&format!("exec {arguments}")).env("TOLD", "a value"))
}

#[test]
fn a_program_has_its_arguments_environment_and_exit_status() {
    for options in ["-static", "", "-static-pie"] {
        let lab = lab(options);
        let printed = exec(&lab, "./tells 'two words' -x --trace");
        assert_eq!(printed.status, Some(7), "{options}: {printed:?}");
        assert_eq!(
            printed.stdout,
            "4 bytes\nword 0: ./tells\nword 1: two words\nword 2: -x\nword 3: --trace\nTOLD=a value\n",
            "{options}"
        );
        assert_eq!(printed.stderr, "", "{options}");
    }
}

#[test]
fn a_program_may_have_another_name_of_its_own() {
    let lab = lab("-static");
    let printed = exec(&lab, "--argv0 'other name' ./tells word");
    assert_eq!(printed.status, Some(7), "{printed:?}");
    let words = "word 0: other name\nword 1: word\nTOLD";
    assert!(printed.stdout.contains(words), "{printed:?}");
    lab.widthwise("exec --argv0 name").refuses(2, &["a program is missing"]);
}

/// Rust's runtime, in which `exec` begins, ignores SIGPIPE and opens closed streams.
#[test]
fn a_program_has_the_callers_closed_streams_and_ignored_sigpipe() {
    let lab = Laboratory::new();
    lab.write(
        "streams.c",
        r#"#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
int main(int count, char **words) {
    struct sigaction pipe;
    sigaction(SIGPIPE, NULL, &pipe);
    int open[3];
    for (int i = 0; i < 3; i++)
        open[i] = fcntl(i, F_GETFD) != -1;
    FILE *file = fopen(words[1], "w");
    fprintf(file, "%d%d%d %s", open[0], open[1], open[2], pipe.sa_handler == SIG_IGN ? "ignored" : "default");
    return count != 2 || fclose(file) != 0;
}
"#,
    );
    lab.gcc(&format!("{X32} -static streams.c -o streams"));
    for (begin, redirections, found) in [
        ("", "", "111 default"),
        ("trap '' PIPE; ", "", "111 ignored"),
        ("", "<&- >&-", "001 default"),
        ("trap '' PIPE; ", "<&- >&- 2>&-", "000 ignored"),
    ] {
        let script = format!("{begin}\"$WIDTHWISE\" exec ./streams found {redirections}");
        let mut shell = Command::new("sh");
        // Rust's own start of a command gives it the default of SIGPIPE.
        shell.args(["-c", &script]).env("WIDTHWISE", env!("CARGO_BIN_EXE_widthwise"));
        let ended = output_of(shell.current_dir(lab.path("")));
        assert_eq!(ended.status, Some(0), "{script}: {ended:?}");
        assert_eq!(lab.read("found"), found, "{script}");
    }
}

#[test]
fn a_signal_ends_it_as_it_ends_any_program() {
    let lab = Laboratory::new();
    lab.write("dies.c", "int main(void) { *(volatile int *)16 = 1; }");
    lab.gcc(&format!("{X32} -static dies.c -o dies"));
    let status = lab.command("exec ./dies").status().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(11), "{status:?}");
}

#[test]
fn a_script_is_started_through_its_x32_interpreter() {
    let lab = lab("-static");
    let interpreter = lab.path("tells").display().to_string();
    lab.script("script", &format!("#!{interpreter} one argument\n"));
    let printed = exec(&lab, "./script last");
    assert_eq!(printed.status, Some(7), "{printed:?}");
    let words = format!("word 0: {interpreter}\nword 1: one argument\nword 2: ./script\nword 3: last\n");
    assert!(printed.stdout.contains(&words), "{printed:?}");
}

const NAMES: &str = r#"
#include <stdio.h>
#include <unistd.h>
int main(void) {
    char name[4096];
    long size = readlink("/proc/self/exe", name, sizeof name);
    printf("%.*s", (int)size, name);
    return size < 0;
}
"#;

#[test]
fn a_program_reads_its_own_name_by_whatever_path_it_was_started() {
    for options in ["-static", ""] {
        let lab = Laboratory::new();
        lab.write("names.c", NAMES);
        lab.gcc(&format!("{X32} {options} names.c -o names"));
        let long = "long".repeat(60);
        for folder in ["folder", &long] {
            std::fs::create_dir(lab.path(folder)).unwrap();
            lab.copy(&lab.path("names"), &format!("{folder}/names"));
        }
        std::os::unix::fs::symlink("names", lab.path("link")).unwrap();
        std::os::unix::fs::symlink("folder", lab.path("to-folder")).unwrap();
        let (in_long, absolute) = (format!("{long}/names"), lab.path("names"));
        let around = format!("{}/folder/../folder/names", lab.path("").display());
        let paths = [
            "./names",
            "folder/names",
            "././names",
            ".//names",
            "folder/../names",
            "folder/./names",
            "./link",
            "to-folder/names",
            "to-folder/../names",
            &in_long,
            absolute.to_str().unwrap(),
            &around,
        ];
        for path in paths {
            let printed = exec(&lab, path);
            let wanted = std::fs::canonicalize(lab.path(path)).unwrap();
            assert_eq!(printed.stdout, wanted.to_str().unwrap(), "{options}: {path}: {printed:?}");
        }
    }
}

/// A call in each of two pages of a text of 256 KiB, made often. Prints how much of the text is the process's own, in KiB, and
/// into how many mappings it is divided. With an argument one of the pages is locked first.
const TWO_PAGES: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { SIZE = 1 << 18 };
static const unsigned char code[] = {0xb8, 0x6e, 0, 0, 0x40, 0x0f, 0x05, 0xc3};
static unsigned char bytes[SIZE];
int main(int count, char **words) {
    int file = memfd_create("text", 0), pages[] = {5, 40};
    unsigned long place = (unsigned long)mmap(NULL, 2 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++)
        memcpy(bytes + 4096 * pages[i], code, sizeof code);
    write(file, bytes, SIZE);
    place = (place + 0xffff) & ~0xffffUL;
    unsigned char *text = mmap((void *)place, SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0);
    if (count > 1 && mlock(text + 4096 * pages[0], 4096))
        return 1;
    for (int i = 0; i < 2; i++)
        for (int call = 0; call < 40; call++)
            if (((int (*)(void))(text + 4096 * pages[i]))() != getppid())
                return 2;
    char line[512];
    int mappings = 0, is_text = 0;
    long own = 0, one;
    unsigned long low, high;
    FILE *smaps = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, smaps))
        if (sscanf(line, "%lx-%lx %*[-rwxps]", &low, &high) == 2)
            mappings += is_text = low >= place && high <= place + SIZE;
        else if (is_text && sscanf(line, "Anonymous: %ld", &one) == 1)
            own += one;
    printf("%ld KiB in %d mappings\n", own, mappings);
    return 0;
}
"#;

#[test]
fn rewritten_text_is_divided_at_64_kib_and_where_memory_is_locked_one_page_is_copied() {
    let lab = Laboratory::new();
    lab.write("pages.c", TWO_PAGES);
    lab.gcc(&format!("{X32} -static -D_GNU_SOURCE pages.c -o pages"));
    let printed = [exec(&lab, "./pages").stdout, exec(&lab, "./pages locked").stdout];
    if widthwise_x32run::kernel_has_x32() {
        return assert_eq!(printed, ["0 KiB in 1 mappings\n", "0 KiB in 1 mappings\n"]);
    }
    assert_eq!(printed, ["8 KiB in 4 mappings\n", "8 KiB in 5 mappings\n"]);
}

#[test]
fn every_call_can_be_shown() {
    let lab = lab("");
    let printed = exec(&lab, "--trace ./tells");
    assert_eq!(printed.status, Some(7), "{printed:?}");
    for part in ["openat(-100, \"/libx32/libc.so.6\"", "write(1, ", "exit_group(7)"] {
        assert!(printed.stderr.contains(part), "{part} is missing: {}", printed.stderr);
    }
    assert!(printed.stdout.starts_with("4 bytes\n"), "{printed:?}");
}

#[test]
fn statistics_show_sites_traps_and_the_runtimes_memory() {
    let lab = Laboratory::new();
    lab.write(
        "calls.c",
        "#include <string.h>\n#include <unistd.h>\n#include <sys/mman.h>\n#include <sys/syscall.h>
        static const unsigned char code[] = {0xb8, 0x6e, 0, 0, 0x40, 0x0f, 0x05, 0xc3};
        int main(int count, char **words) {
            char *sealed = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memcpy(sealed + 64, code, sizeof code);
            mprotect(sealed, 4096, PROT_READ | PROT_EXEC);
            syscall(0x40000000 | 462, sealed, 4096, 0);
            for (int i = 0; i < 100; i++) ((int (*)(void))(sealed + 64))();
            for (int i = 0; i < 10000; i++) getppid(), getuid(), getgid();
            for (char **one = words + 1; *one; one++) execl(*one, *one, NULL);
        }",
    );
    lab.gcc(&format!("{X32} calls.c -o calls"));
    lab.script("text", "no program\n");
    let printed = exec(&lab, "--stats ./calls");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let number = |before: &str, after: &str| -> u64 {
        let text = printed.stderr.split(after).next().unwrap().rsplit(before).next().unwrap();
        text.trim().parse().unwrap_or_else(|_| panic!("{before}…{after} in {:?}", printed.stderr))
    };
    let (rewritten, trapped) = (number(":", "sites rewritten"), number(",", "calls trapped"));
    // The sites of a page trap twelve times; later calls use their stubs. A sealed page's site is not rewritten.
    assert!((3..50).contains(&rewritten) && (12..200).contains(&trapped), "{printed:?}");
    let own = number(";", "KiB of the resident memory");
    assert!(own > 50 && own <= 300, "{printed:?}");
    // One line for each image that ended: an execve that fails ends none.
    for (executed, lines) in [("/nowhere . ./text", 1), ("/nowhere ./calls", 2), ("/nowhere /bin/true", 1)] {
        let printed = exec(&lab, &format!("--stats ./calls {executed}"));
        assert_eq!(printed.stderr.matches("sites rewritten").count(), lines, "{executed}: {printed:?}");
    }
}

#[test]
fn what_cannot_be_started_is_reported_in_one_line_with_a_shells_exit_status() {
    let lab = lab("");
    let interpreter = lab.path("no-interpreter").display().to_string();
    lab.gcc(&format!("{X32} -Wl,--dynamic-linker={interpreter} tells.c -o lost"));
    let whole = std::fs::read(lab.path("tells")).unwrap();
    std::fs::write(lab.path("cut"), &whole[..whole.len() / 4]).unwrap();
    std::fs::write(lab.path("stub"), &whole[..40]).unwrap();
    for file in ["cut", "stub"] {
        std::fs::set_permissions(lab.path(file), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    lab.script("text", "no program\n");
    std::fs::write(lab.path("unset"), &whole).unwrap();
    std::os::unix::fs::symlink("loop", lab.path("loop")).unwrap();
    assert!(Command::new("mkfifo").arg(lab.path("fifo")).status().unwrap().success());
    lab.script("shell-script", "#!/bin/sh\n");
    lab.script("lost-script", "#!/nowhere\n");
    lab.script("denied-script", "#!./unset\n");
    for (arguments, status, parts) in [
        ("./nowhere", 127, ["./nowhere", "there is no such file"]),
        ("''", 127, ["x32run: '' is an empty name", "a program is needed"]),
        ("/bin/true", 126, ["/bin/true", "not an x32 program"]),
        ("./text", 126, ["./text", "not an x32 program"]),
        ("./cut", 126, ["./cut", "it is truncated"]),
        ("./stub", 126, ["./stub", "too short"]),
        ("./lost", 127, ["no-interpreter", "cannot be opened: ENOENT"]),
        ("/", 126, ["x32run: /: ", "it is a directory"]),
        ("./unset", 126, ["./unset: permission denied", "not executable (chmod +x)"]),
        ("./tells/below", 127, ["./tells/below: ", "it is below a file that is not a directory"]),
        ("./loop", 126, ["./loop: ", "too many symbolic links"]),
        ("./fifo", 126, ["./fifo: ", "it is not a regular file"]),
        ("./shell-script", 126, ["./shell-script: its interpreter /bin/sh", "is not an x32 program"]),
        ("./lost-script", 127, ["./lost-script: its interpreter /nowhere", "there is no such file"]),
        ("./denied-script", 126, ["./denied-script: its interpreter ./unset", "permission denied"]),
    ] {
        let printed = exec(&lab, arguments);
        assert_eq!(printed.status, Some(status), "{arguments}: {printed:?}");
        assert_eq!(printed.stderr.lines().count(), 1, "{arguments}: {printed:?}");
        assert!(parts.iter().all(|part| printed.stderr.contains(part)), "{arguments}: {printed:?}");
        assert_eq!(printed.stdout, "", "{arguments}");
        if !["./cut", "./stub", "./lost"].contains(&arguments) {
            let under_gdb = exec(&lab, &format!("--gdb {arguments}"));
            let [all, same] = [&under_gdb, &printed].map(|one| (one.status, &one.stdout, &one.stderr));
            assert_eq!(all, same, "--gdb {arguments}");
        }
    }
    lab.widthwise("exec --stast ./tells").refuses(2, &["unexpected argument '--stast'", "--stats"]);
    assert_eq!(exec(&lab, "-- --stast").status, Some(127));
    lab.widthwise("exec").refuses(2, &["a program is missing"]);
    lab.widthwise("exec --register ./tells").refuses(2, &["stand alone"]);
}

#[test]
fn it_runs_for_an_unprivileged_user() {
    let lab = lab("-static");
    std::fs::set_permissions(lab.path("."), std::fs::Permissions::from_mode(0o755)).unwrap();
    let runtime = widthwise_x32run::place_in(&lab.path("runtime")).unwrap();
    // SAFETY: geteuid has no preconditions.
    let mut command = if unsafe { libc::geteuid() } == 0 {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &NOBODY.to_string(), "--regid", &NOBODY.to_string(), "--clear-groups"]);
        command.args(["--no-new-privs", "--"]).arg(&runtime);
        command
    } else {
        Command::new(&runtime)
    };
    let reported = output_of(command.arg(lab.path("tells")));
    assert_eq!(reported.status, Some(7), "{reported:?}");
}

/// As `arch_align_stack()` of the kernel does: a program whose speed depends on the place of its stack in a page varies as elsewhere.
#[test]
fn the_stack_begins_anywhere_in_its_page_unless_addresses_are_fixed() {
    let lab = Laboratory::new();
    lab.write(
        "places.c",
        r#"
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    if (count > 1) {
        printf("%d\n", (int)((uintptr_t)__builtin_frame_address(0) & 4095));
        return 0;
    }
    for (int i = 0; i < 40; i++) {
        if (fork() == 0) {
            execl(words[0], words[0], "child", NULL);
            _exit(1);
        }
        wait(NULL);
    }
}
"#,
    );
    lab.gcc(&format!("{X32} places.c -o places"));
    let places = |printed: &CommandOutput| {
        let lines: Vec<&str> = printed.stdout.lines().collect();
        assert_eq!(lines.len(), 40, "{printed:?}");
        lines.into_iter().collect::<std::collections::BTreeSet<_>>().len()
    };
    let printed = exec(&lab, "./places");
    // Of 256 places, 40 starts have 37 on average.
    assert!(places(&printed) > 25, "{printed:?}");
    let program = lab.command("exec ./places").get_program().to_owned();
    let mut command = std::process::Command::new("setarch");
    command.arg("-R").arg(program).args(["exec", "./places"]).current_dir(lab.path(""));
    let printed = output_of(&mut command);
    assert_eq!(places(&printed), 1, "{printed:?}");
}

#[test]
fn no_page_is_both_writable_and_executable() {
    let lab = Laboratory::new();
    lab.write(
        "maps.c",
        r#"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static void *nothing(void *with) { return with; }
int main(void) {
    char line[4096];
    pthread_t thread;
    for (int i = 0; i < 3; i++) {
        pthread_create(&thread, NULL, nothing, NULL);
        pthread_join(thread, NULL);
    }
    FILE *maps = fopen("/proc/self/maps", "r");
    int both = 0, lines = 0;
    while (fgets(line, sizeof line, maps)) {
        char *rights = strchr(line, ' ') + 1;
        both += rights[1] == 'w' && rights[2] == 'x';
        lines++;
    }
    printf("%d of %s\n", both, lines > 10 ? "many" : "few");
}
"#,
    );
    lab.gcc(&format!("{X32} maps.c -o maps"));
    let printed = exec(&lab, "./maps");
    assert_eq!(printed.stdout, "0 of many\n", "{printed:?}");
}

#[test]
fn the_second_interception_method_is_used_if_the_first_is_unavailable() {
    let lab = lab("");
    let runtime = widthwise_x32run::place_in(&lab.path("runtime")).unwrap();
    for options in ["--seccomp", "--no-rewrite", "--ahead"] {
        let printed = output_of(Command::new(&runtime).arg(options).arg(lab.path("tells")).env("TOLD", "x"));
        assert_eq!(printed.status, Some(7), "{options}: {printed:?}");
        assert!(printed.stdout.contains("TOLD=x"), "{options}: {printed:?}");
    }
}

/// The kernel's list of formats is shared by the whole machine.
static REGISTRATION: Mutex<()> = Mutex::new(());

#[test]
fn the_kernel_starts_x32_files_while_the_runtime_is_registered() {
    let lab = lab("");
    // SAFETY: geteuid has no preconditions.
    let root = unsafe { libc::geteuid() } == 0;
    let folder = std::path::Path::new("/proc/sys/fs/binfmt_misc");
    if root && !folder.join("register").exists() {
        // If a kernel has none, or a container forbids it, the command reports that below.
        let _ = Command::new("mount").args(["-t", "binfmt_misc", "none"]).arg(folder).output();
    }
    let _turn = REGISTRATION.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let before = Command::new(lab.path("tells")).output();
    let reported = lab.widthwise("exec --register");
    if !root || !folder.join("register").exists() {
        reported.refuses(2, &["binfmt_misc"]);
        return skipped("it takes root and a kernel with binfmt_misc; that the command says so was tested");
    }
    let (during, taken_back) = (Command::new(lab.path("tells")).output(), lab.widthwise("exec --unregister"));
    let after = Command::new(lab.path("tells")).output();
    assert_eq!(reported.status, Some(0), "{reported:?}");
    assert_eq!(taken_back.status, Some(0), "{taken_back:?}");
    assert_eq!(during.unwrap().status.code(), Some(7));
    assert_eq!(before.is_ok(), after.is_ok(), "as it was before");
}

#[test]
fn a_program_in_a_chroot_without_proc_can_start_others() {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return skipped("it takes root to go into a chroot");
    }
    let lab = Laboratory::new();
    let jail = lab.path("inside");
    std::fs::create_dir(&jail).unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/programs/jail.c");
    lab.gcc(&format!("{X32} -static {source} -o inside/jail"));
    lab.copy(&jail.join("jail"), "inside/text");
    std::fs::set_permissions(jail.join("text"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let expected = "spawned, by posix_spawn; 0 descriptors\nposix_spawn: Success, status 0\nnot executable: Permission denied\n\
                    not there: No such file or directory\ngiven, by fexecve; 0 descriptors\n";
    let printed = exec(&lab, &format!("inside/jail {}", jail.display()));
    assert_eq!((printed.status, printed.stdout.as_str()), (Some(0), expected), "{printed:?}");
    // So can a program that the kernel started there through the runtime, which has no path there.
    let _turn = REGISTRATION.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if lab.widthwise("exec --register").status != Some(0) {
        return skipped("binfmt_misc is not to be had; without it the same was tested");
    }
    let done = Command::new("chroot").arg(&jail).args(["/jail", "inside"]).output();
    lab.widthwise("exec --unregister");
    let done = done.unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout), expected, "{done:?}");
}

#[test]
fn robust_mutexes_are_released_without_the_kernels_i386_entry_too() {
    let lab = Laboratory::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/programs/robust.c");
    lab.gcc(&format!("-O1 -D_GNU_SOURCE -pthread {source} -o robust-x86-64"));
    lab.gcc(&format!("{X32} -D_GNU_SOURCE -pthread {source} -o robust-x32"));
    let expected = output_of(&mut Command::new(lab.path("robust-x86-64"))).stdout;
    assert!(
        expected.contains("execve: Owner died\nexit_group of another thread: Owner died\n")
            && expected.contains("after an execve that failed: Device or resource busy\ngiven up: 0 0\n"),
        "{expected}"
    );
    let runtime = widthwise_x32run::place_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    for option in ["--no-rewrite", "--no-i386"] {
        let printed = output_of(Command::new(&runtime).arg(option).arg(lab.path("robust-x32")));
        assert_eq!(
            (printed.status, printed.stdout.as_str()),
            (Some(0), expected.as_str()),
            "{option}: {printed:?}"
        );
    }
    let check = output_of(Command::new(&runtime).args(["--no-i386", "--check"]));
    assert!(
        check.stdout.starts_with("i386 entry: no ") && check.stdout.contains("IA32_EMULATION"),
        "{check:?}"
    );
}

/// Options of IPv6 and IPv4 whose numbers lie among those of netfilter's tables: whether each can be set and read. And those whose value
/// is control messages.
const OPTIONS: &str = r#"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
static void tell(int socket, int level, int name) {
    int value = 1, set = setsockopt(socket, level, name, &value, sizeof value) ? errno : 0;
    socklen_t size = sizeof value;
    int get = getsockopt(socket, level, name, &value, &size) ? errno : 0;
    printf("%d %d: %d %d %d\n", level, name, set, get, get ? 0 : value);
}
static void tell_control(int socket, int level, int name) {
    char room[256] __attribute__((aligned(8)));
    socklen_t size = sizeof room;
    printf("%d %d: %d\n", level, name, getsockopt(socket, level, name, room, &size));
    struct msghdr message = {.msg_control = room, .msg_controllen = size};
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one))
        printf("%d %d %d\n", one->cmsg_level, one->cmsg_type, (int)(one->cmsg_len - CMSG_LEN(0)));
}
int main(void) {
    static const int of_6[] = {66, 67, 70, 72, 73, 74, 75, 76, 78, 80};
    int six = socket(AF_INET6, SOCK_DGRAM, 0), four = socket(AF_INET, SOCK_STREAM, 0);
    for (unsigned i = 0; six >= 0 && i < sizeof of_6 / sizeof *of_6; i++)
        tell(six, SOL_IPV6, of_6[i]);
    tell(four, SOL_IP, 80);
    int yes = 1, stream = socket(AF_INET6, SOCK_STREAM, 0);
    setsockopt(four, SOL_IP, IP_PKTINFO, &yes, sizeof yes), setsockopt(four, SOL_IP, IP_RECVTTL, &yes, sizeof yes);
    tell_control(four, SOL_IP, IP_PKTOPTIONS);
    for (int name = 2 /* IPV6_2292PKTINFO */; stream >= 0 && name <= 8; name += 6)
        setsockopt(stream, SOL_IPV6, name, &yes, sizeof yes);
    if (stream >= 0)
        tell_control(stream, SOL_IPV6, IPV6_2292PKTOPTIONS);
    return 0;
}
"#;

#[test]
fn options_beside_those_of_netfilter_need_no_i386_entry() {
    let lab = Laboratory::new();
    lab.write("options.c", OPTIONS);
    lab.gcc("-O1 -D_GNU_SOURCE options.c -o options-x86-64");
    lab.gcc(&format!("{X32} -D_GNU_SOURCE options.c -o options-x32"));
    let expected = output_of(&mut Command::new(lab.path("options-x86-64"))).stdout;
    let runtime = widthwise_x32run::place_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    let printed = output_of(Command::new(&runtime).arg("--no-i386").arg(lab.path("options-x32")));
    assert_eq!((printed.status, printed.stdout.as_str()), (Some(0), expected.as_str()), "{printed:?}");
}

/// Starts its arguments in a process in which nothing that was writable becomes executable.
const STRICT: &str = r#"
#include <sys/prctl.h>
#include <unistd.h>
int main(int count, char **words) {
    if (count < 2 || prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0))
        return 3;
    execv(words[1], words + 1);
    return 2;
}
"#;

const CLOCK: &str = r#"
#include <stdio.h>
#include <sys/auxv.h>
#include <time.h>
int main(void) {
    struct timespec now;
    printf("%d %d\n", clock_gettime(CLOCK_MONOTONIC, &now), getauxval(AT_SYSINFO_EHDR) != 0);
    return 0;
}
"#;

#[test]
fn clocks_are_read_where_nothing_writable_becomes_executable() {
    let lab = Laboratory::new();
    lab.write("strict.c", STRICT);
    lab.gcc("-O1 strict.c -o strict");
    lab.write("clock.c", CLOCK);
    let runtime = widthwise_x32run::place_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    for options in ["-static", ""] {
        lab.gcc(&format!("{X32} {options} clock.c -o clock"));
        let started = output_of(Command::new(lab.path("strict")).arg(&runtime).arg(lab.path("clock")));
        if started.status == Some(3) {
            return skipped("the kernel has no PR_SET_MDWE (Linux 6.3)");
        }
        assert_eq!((started.status, started.stdout.as_str()), (Some(0), "0 1\n"), "{options}: {started:?}");
    }
}

/// A thread finds no room and reads the list of mappings, which is a pipe here. Whether a child that finds none reads the
/// list, too, which is a file by then: 0 if so.
const READS_AGAIN: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static void *look_for_room(void *nothing) {
    while (mmap(NULL, 1 << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED)
        ;
    return nothing;
}
int main(void) {
    mkdir("root", 0755), mkdir("root/proc", 0755), mkdir("root/proc/thread-self", 0755);
    if (chroot("root") || chdir("/proc/thread-self") || mkfifo("maps", 0600))
        return 3;
    close(open("file", O_WRONLY | O_CREAT, 0644));
    pthread_t thread;
    pthread_create(&thread, NULL, look_for_room, NULL);
    while (open("maps", O_WRONLY | O_NONBLOCK) < 0)
        sched_yield();
    rename("file", "maps");
    int watch = inotify_init1(IN_NONBLOCK), status;
    inotify_add_watch(watch, "maps", IN_OPEN);
    pid_t child = fork();
    if (child == 0) {
        look_for_room(NULL);
        _exit(0);
    }
    waitpid(child, &status, 0);
    char event[4096];
    _exit(read(watch, event, sizeof event) <= 0);
}
"#;

#[test]
fn a_child_looks_for_room_although_another_thread_did_so_when_it_was_forked() {
    let lab = Laboratory::new();
    lab.write("reads.c", READS_AGAIN);
    lab.gcc(&format!("{X32} -w -static -pthread -D_GNU_SOURCE reads.c -o reads"));
    let printed = exec(&lab, "./reads");
    if printed.status == Some(3) {
        return skipped("chroot is not permitted");
    }
    assert_eq!(printed.status, Some(0), "{printed:?}");
}
