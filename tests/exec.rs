//! `exec`: an x32 program runs here on any kernel, and its surroundings are as if the kernel had started
//! it. `oracle.rs` compares the results of its system calls with those of a kernel with x32.

mod laboratory;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use laboratory::outcomes::skipped;
use laboratory::{said, CommandOutput, Laboratory, NOBODY};

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
    said(lab.command(&format!("exec {arguments}")).env("TOLD", "a value"))
}

#[test]
fn a_program_has_its_arguments_environment_and_exit_status() {
    for options in ["-static", "", "-static-pie"] {
        let lab = lab(options);
        let said = exec(&lab, "./tells 'two words' -x --trace");
        assert_eq!(said.status, Some(7), "{options}: {said:?}");
        assert_eq!(
            said.stdout,
            "4 bytes\nword 0: ./tells\nword 1: two words\nword 2: -x\nword 3: --trace\nTOLD=a value\n",
            "{options}"
        );
        assert_eq!(said.stderr, "", "{options}");
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
    let said = exec(&lab, "./script last");
    assert_eq!(said.status, Some(7), "{said:?}");
    let words = format!("word 0: {interpreter}\nword 1: one argument\nword 2: ./script\nword 3: last\n");
    assert!(said.stdout.contains(&words), "{said:?}");
}

#[test]
fn every_call_can_be_shown() {
    let lab = lab("");
    let said = exec(&lab, "--trace ./tells");
    assert_eq!(said.status, Some(7), "{said:?}");
    for part in ["openat(-100, \"/libx32/libc.so.6\"", "write(1, ", "exit_group(7)"] {
        assert!(said.stderr.contains(part), "{part} is missing: {}", said.stderr);
    }
    assert!(said.stdout.starts_with("4 bytes\n"), "{said:?}");
}

#[test]
fn statistics_show_sites_traps_and_the_runtimes_memory() {
    let lab = Laboratory::new();
    lab.write(
        "calls.c",
        "#include <unistd.h>\n#include <sys/syscall.h>\nint main(void) { for (int i = 0; i < 10000; i++) getppid(); }",
    );
    lab.gcc(&format!("{X32} calls.c -o calls"));
    let said = exec(&lab, "--stats ./calls");
    assert_eq!(said.status, Some(0), "{said:?}");
    let number = |before: &str, after: &str| -> u64 {
        let text = said.stderr.split(after).next().unwrap().rsplit(before).next().unwrap();
        text.trim().parse().unwrap_or_else(|_| panic!("{before}…{after} in {:?}", said.stderr))
    };
    let (rewritten, trapped) = (number(":", "sites rewritten"), number(",", "calls trapped"));
    // The sites of a page trap six times; later calls use their stubs.
    assert!(rewritten > 2 && (6..200).contains(&trapped), "{said:?}");
    let own = number(";", "KiB of the resident memory");
    assert!(own > 50 && own <= 300, "{said:?}");
}

#[test]
fn what_cannot_be_started_is_reported_in_one_line_with_a_shells_exit_status() {
    let lab = lab("");
    let interpreter = lab.path("no-interpreter").display().to_string();
    lab.gcc(&format!("{X32} -Wl,--dynamic-linker={interpreter} tells.c -o lost"));
    let whole = std::fs::read(lab.path("tells")).unwrap();
    std::fs::write(lab.path("cut"), &whole[..whole.len() / 4]).unwrap();
    std::fs::write(lab.path("stub"), &whole[..40]).unwrap();
    lab.write("text", "no program\n");
    for (arguments, status, parts) in [
        ("./nowhere", 127, ["./nowhere", "there is no such file"]),
        ("/bin/true", 126, ["/bin/true", "not an x32 program"]),
        ("./text", 126, ["./text", "not an x32 program"]),
        ("./cut", 126, ["./cut", "it is truncated"]),
        ("./stub", 126, ["./stub", "too short"]),
        ("./lost", 127, ["no-interpreter", "cannot be opened: ENOENT"]),
        ("/", 126, ["/", "cannot be read"]),
    ] {
        let said = exec(&lab, arguments);
        assert_eq!(said.status, Some(status), "{arguments}: {said:?}");
        assert_eq!(said.stderr.lines().count(), 1, "{arguments}: {said:?}");
        assert!(parts.iter().all(|part| said.stderr.contains(part)), "{arguments}: {said:?}");
        assert_eq!(said.stdout, "", "{arguments}");
    }
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
    let told = said(command.arg(lab.path("tells")));
    assert_eq!(told.status, Some(7), "{told:?}");
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
    let said = exec(&lab, "./maps");
    assert_eq!(said.stdout, "0 of many\n", "{said:?}");
}

#[test]
fn the_second_interception_method_is_used_if_the_first_is_unavailable() {
    let lab = lab("");
    let runtime = widthwise_x32run::place_in(&lab.path("runtime")).unwrap();
    for options in ["--seccomp", "--no-rewrite", "--ahead"] {
        let said = said(Command::new(&runtime).arg(options).arg(lab.path("tells")).env("TOLD", "x"));
        assert_eq!(said.status, Some(7), "{options}: {said:?}");
        assert!(said.stdout.contains("TOLD=x"), "{options}: {said:?}");
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
    let told = lab.widthwise("exec --register");
    if !root || !folder.join("register").exists() {
        told.refuses(2, &["binfmt_misc"]);
        return skipped("it takes root and a kernel with binfmt_misc; that the command says so was tested");
    }
    let (during, taken_back) = (Command::new(lab.path("tells")).output(), lab.widthwise("exec --unregister"));
    let after = Command::new(lab.path("tells")).output();
    assert_eq!(told.status, Some(0), "{told:?}");
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
    std::fs::copy(jail.join("jail"), jail.join("text")).unwrap();
    std::fs::set_permissions(jail.join("text"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let expected = "spawned, by posix_spawn; 0 descriptors\nposix_spawn: Success, status 0\nnot executable: Permission denied\n\
                    not there: No such file or directory\ngiven, by fexecve; 0 descriptors\n";
    let said = exec(&lab, &format!("inside/jail {}", jail.display()));
    assert_eq!((said.status, said.stdout.as_str()), (Some(0), expected), "{said:?}");
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
    let expected = said(&mut Command::new(lab.path("robust-x86-64"))).stdout;
    assert!(
        expected.contains("execve: Owner died\nexit_group of another thread: Owner died\n"),
        "{expected}"
    );
    let runtime = widthwise_x32run::place_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    for option in ["--no-rewrite", "--no-i386"] {
        let said = said(Command::new(&runtime).arg(option).arg(lab.path("robust-x32")));
        assert_eq!((said.status, said.stdout.as_str()), (Some(0), expected.as_str()), "{option}: {said:?}");
    }
    let check = said(Command::new(&runtime).args(["--no-i386", "--check"]));
    assert!(
        check.stdout.starts_with("i386 entry: no ") && check.stdout.contains("IA32_EMULATION"),
        "{check:?}"
    );
}
