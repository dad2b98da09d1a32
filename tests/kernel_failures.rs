//! Emulated machines that cannot do what is asked: each is one reason in the variant's row, within a time limit, and the other
//! variants keep their figures. `make test` boots kernels of some bytes, `make test-all PARTS=kernels` Debian's.

use std::path::Path;
use std::process::{Command, Stdio};

use widthwise_machine::bzimage;

use crate::laboratory::outcomes::{is_lane, skipped};
use crate::laboratory::{
    count, is_root, output_of, signal, unfolded, until, variant, verdict, CommandOutput, Laboratory,
};

/// Prints a line.
const CALLS: &str = "#include <stdio.h>\nint main(void) {\n  puts(\"done\");\n  return 0;\n}\n";

/// `lidt` of a table without entries, and a trap: the processor is reset, as a kernel with `panic=-1` resets it.
const RESET: &[u8] = &[0x0f, 0x01, 0x1e, 0x00, 0x05, 0xcc];
/// `cli`, `hlt`.
const HALT: &[u8] = &[0xfa, 0xf4, 0xeb, 0xfd];

/// A bzImage that writes a line to its console and then executes `end`.
fn kernel(lab: &Laboratory, name: &str, line: &str, end: &[u8]) {
    /// mov $0x3f8, %dx; mov $TEXT, %si; 1: lodsb %cs:(%si), %al; test %al, %al; jz 2f; out %al, %dx; jmp 1b; 2:
    const PRINT: [u8; 15] =
        [0xba, 0xf8, 0x03, 0xbe, 0, 0, 0x2e, 0xac, 0x84, 0xc0, 0x74, 0x03, 0xee, 0xeb, 0xf7];
    let text = u16::try_from(bzimage::CODE - 0x200 + PRINT.len() + end.len()).unwrap();
    let mut print = PRINT;
    print[4..6].copy_from_slice(&text.to_le_bytes());
    let code = [&print, end, line.as_bytes(), b"\0"].concat();
    std::fs::write(lab.path(name), bzimage::minimal(&code)).unwrap();
}

fn laboratory() -> Laboratory {
    let lab = Laboratory::new();
    lab.write("calls.c", CALLS);
    lab
}

/// Nothing that this laboratory has started is left, and nothing of its machines.
fn is_clean(lab: &Laboratory) {
    assert_eq!(lab.processes(), "", "left running");
    assert!(!lab.campaign().join("scratch").exists(), "left in scratch");
}

#[test]
fn a_kernel_that_panics_is_the_reason_of_its_variant_and_the_others_are_measured() {
    let lab = laboratory();
    kernel(&lab, "panics", "a line before\r\nKernel panic - not syncing: no working init\r\n", RESET);
    let report = lab.compare_json("calls.c --abi x86-64 --kernel host,./panics --rounds 1 --warmup 0");
    let row = variant(&report, "x86-64/panics");
    let reason = row["reason"].as_str().unwrap();
    assert!(
        reason.contains("/panics ended early; its console: Kernel panic - not syncing: no working init"),
        "{row}"
    );
    // This machine's own kernel has a time and the count of its program.
    let own = verdict(&report, "x86-64/host control", "instructions_user");
    assert_eq!(own["source"], "qemu", "{own}");
    assert_eq!(count(&lab.archive(), "SELECT count(*) FROM rounds WHERE kind = 'timed'"), 1);
    is_clean(&lab);
}

#[test]
fn a_kernel_that_never_reaches_the_program_is_ended_at_its_time_limit() {
    let lab = laboratory();
    kernel(&lab, "waits", "waiting for the root device\r\n", HALT);
    let failed = lab.compare("calls.c --abi x86-64 --kernel ./waits --boot-timeout 2s");
    assert_eq!(failed.status, Some(1), "{failed:?}");
    let text = unfolded(&failed.stdout);
    let reason = "/waits did not start its first process within 2 s (--boot-timeout); its console: waiting for the root device";
    assert!(text.contains(reason), "{text}");
    is_clean(&lab);
    let none = lab.compare("calls.c --abi x86-64 --kernel ./waits --boot-timeout 0s");
    none.refuses(2, &["boot_timeout", "--boot-timeout"]);
}

#[test]
fn a_machine_that_boots_is_ended_by_control_c() {
    let lab = laboratory();
    kernel(&lab, "waits", "waiting\r\n", HALT);
    let mut command = lab.comparing("calls.c --abi x86-64 --kernel ./waits");
    let campaign = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("QEMU runs", || lab.processes().contains("qemu-system-x86_64"));
    signal(&campaign, libc::SIGINT);
    let ended = campaign.wait_with_output().unwrap();
    assert!(ended.status.code().is_some(), "{ended:?}");
    is_clean(&lab);
}

#[test]
fn a_program_without_its_library_does_not_boot() {
    let lab = laboratory();
    kernel(&lab, "waits", "waiting\r\n", HALT);
    lab.write("part.c", "int part(void) { return 0; }\n");
    lab.write("whole.c", "int part(void);\nint main(void) { return part(); }\n");
    lab.gcc("-shared -fPIC -o libpart.so part.c");
    lab.gcc("-o whole whole.c -L. -l:libpart.so");
    let failed = lab.compare("--binary whole=./whole --kernel ./waits --boot-timeout 5m");
    assert_eq!(failed.status, Some(1), "{failed:?}");
    let text = unfolded(&failed.stdout);
    assert!(text.contains("/whole asks for libpart.so, which is not here"), "{text}");
    is_clean(&lab);
}

#[test]
fn an_input_that_is_too_large_does_not_boot() {
    if !is_lane("kernels") {
        return skipped("4 GiB are read for the input's digest: `make test-all PARTS=kernels`");
    }
    let lab = laboratory();
    kernel(&lab, "waits", "waiting\r\n", HALT);
    std::fs::File::create(lab.path("large")).unwrap().set_len(4 << 30).unwrap();
    let failed =
        lab.compare("calls.c --abi x86-64 --kernel ./waits --boot-timeout 5m --input large -- large");
    assert_eq!(failed.status, Some(1), "{failed:?}");
    let text = unfolded(&failed.stdout);
    assert!(text.contains("/large does not fit: a file may have 4095 MiB"), "{text}");
    is_clean(&lab);
}

#[test]
fn without_qemu_the_variant_is_unsupported_with_the_fix() {
    let lab = laboratory();
    kernel(&lab, "waits", "waiting\r\n", HALT);
    // Everything that is on the PATH but QEMU.
    let tools = lab.path("tools");
    std::fs::create_dir(&tools).unwrap();
    for entry in ["/usr/local/bin", "/usr/bin", "/bin"].iter().flat_map(std::fs::read_dir).flatten().flatten()
    {
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with("qemu-") {
            let _ = std::os::unix::fs::symlink(entry.path(), tools.join(name));
        }
    }
    let without = |words: &str| {
        let mut command = lab.comparing(words);
        output_of(command.env("PATH", &tools))
    };
    let report = without("--json calls.c --abi x86-64 --kernel host,./waits --rounds 1 --warmup 0").json();
    let row = variant(&report, "x86-64/waits");
    assert_eq!(row["status"], "unsupported", "{row}");
    let reason = row["reason"].as_str().unwrap();
    assert!(reason.contains("qemu-system-x86_64 is not on the PATH"), "{row}");
    // It is installed and not found here.
    assert!(reason.contains("; export PATH=") || reason.contains("install qemu-system-x86"), "{row}");
    let report = without("--json calls.c --abi x86-64,ppc64 --rounds 1 --warmup 0").json();
    let row = variant(&report, "ppc64");
    assert_eq!(row["status"], "unsupported", "{row}");
    is_clean(&lab);
}

/// Runs a script in a file system of some MiB, `small`.
fn in_small(lab: &Laboratory, mebibytes: u32, script: &str) -> CommandOutput {
    lab.write(
        "trial.sh",
        &format!("set -u\nmkdir small\nmount -t tmpfs -o size={mebibytes}m tmpfs small\n{script}"),
    );
    let mut command = Command::new("unshare");
    if !is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "sh", "trial.sh"]).env("WIDTHWISE", env!("CARGO_BIN_EXE_widthwise"));
    output_of(command.current_dir(lab.path("")))
}

#[test]
fn no_room_for_the_files_of_a_machine_is_the_reason_of_its_variant() {
    let lab = laboratory();
    kernel(&lab, "waits", "waiting\r\n", HALT);
    std::fs::create_dir(lab.path("inputs")).unwrap();
    for name in ["inputs/a", "inputs/b", "inputs/c"] {
        std::fs::File::create(lab.path(name)).unwrap().set_len(15 << 20).unwrap();
    }
    let trial = in_small(
        &lab,
        32,
        "\"$WIDTHWISE\" compare --archive small --cpus any calls.c --abi x86-64 --kernel ./waits --input inputs; \
         echo status $?; du -sm small\n",
    );
    let text = unfolded(&trial.stdout);
    assert!(text.contains("no room for the files of the emulated machine"), "{trial:?}");
    assert!(text.contains("No space left on device") && text.contains("status 1"), "{trial:?}");
    assert_eq!(lab.processes(), "", "left running");
}

/// Debian's kernel, as `packaging/install.sh test` fetches it.
fn debian_kernel() -> Option<String> {
    crate::kernels::kernel()
}

#[test]
fn no_room_for_an_unpacked_kernel_is_one_error() {
    let Some(kernel) = debian_kernel() else {
        return skipped("no kernel: packaging/install.sh test fetches one");
    };
    let lab = laboratory();
    let trial = in_small(
        &lab,
        16,
        &format!(
            "\"$WIDTHWISE\" compare --archive small --cpus any calls.c --abi x86-64 --kernel {kernel}; echo status $?\n\
             find small -type f -size +1M\n"
        ),
    );
    let errors: Vec<&str> = trial.stderr.lines().filter(|line| line.starts_with("error:")).collect();
    assert_eq!(errors.len(), 1, "{trial:?}");
    assert!(errors[0].contains("no room for a kernel") && errors[0].contains("No space left"), "{errors:?}");
    assert_eq!(trial.stdout, "status 2\n", "no part of a kernel is left");
}

/// Debian's kernel in the lane, or why it is not booted.
fn kernel_of_lane() -> Result<String, &'static str> {
    if !is_lane("kernels") {
        return Err(
            "boots Debian's kernel: `make test-all PARTS=kernels`; `make test` has kernels of some bytes",
        );
    }
    debian_kernel().ok_or("no kernel: packaging/install.sh test fetches one")
}

#[test]
fn a_program_that_needs_more_memory_than_the_machine_has_is_named() {
    let kernel = match kernel_of_lane() {
        Ok(kernel) => kernel,
        Err(why) => return skipped(why),
    };
    let lab = Laboratory::new();
    lab.write(
        "hungry.c",
        "#include <stdlib.h>\n#include <string.h>\nint main(void) {\n  for (;;) {\n    char *block = malloc(1 << 24);\n\
         if (block == NULL)\n      return 0;\n    for (long i = 0; i < 1 << 24; i += 4096)\n      block[i] = 1;\n  }\n}\n",
    );
    let failed = lab.compare(&format!("hungry.c --abi x86-64 --kernel {kernel}"));
    assert_eq!(failed.status, Some(1), "{failed:?}");
    let text = unfolded(&failed.stdout);
    assert!(text.contains("the emulated machine's 2048 MiB of memory do not suffice"), "{text}");
    is_clean(&lab);
}

#[test]
fn a_program_that_needs_a_device_or_a_network_fails_with_its_own_message() {
    let kernel = match kernel_of_lane() {
        Ok(kernel) => kernel,
        Err(why) => return skipped(why),
    };
    let lab = Laboratory::new();
    lab.write(
        "needs.c",
        "#include <arpa/inet.h>\n#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
         #include <sys/socket.h>\nint main(void) {\n  if (strcmp(getenv(\"NEED\"), \"device\") == 0) {\n    \
         if (open(\"/dev/sda\", O_RDONLY) < 0)\n      perror(\"/dev/sda\");\n  } else {\n    \
         struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(80)};\n    \
         inet_aton(\"192.0.2.1\", &to.sin_addr);\n    \
         if (connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&to, sizeof to) < 0)\n      perror(\"connect\");\n  }\n  return 1;\n}\n",
    );
    for (need, message) in
        [("device", "/dev/sda: No such file or directory"), ("network", "connect: Network is unreachable")]
    {
        let failed = lab.compare(&format!("needs.c --abi x86-64 --kernel {kernel} --set-env NEED={need}"));
        assert_eq!(failed.status, Some(1), "{failed:?}");
        let text = unfolded(&failed.stdout);
        assert!(text.contains(&format!("exit status 1: {message}")), "{text}");
        assert!(
            text.contains("an emulated machine has no network and none of this machine's devices"),
            "{text}"
        );
        is_clean(&lab);
    }
}

#[test]
fn a_program_that_does_not_end_is_killed_after_its_time_and_not_that_of_the_boot() {
    let kernel = match kernel_of_lane() {
        Ok(kernel) => kernel,
        Err(why) => return skipped(why),
    };
    let lab = Laboratory::new();
    lab.write("endless.c", "int main(void) {\n  for (;;)\n    ;\n}\n");
    let failed = lab.compare(&format!("endless.c --abi x86-64 --kernel {kernel} --timeout 5s"));
    assert_eq!(failed.status, Some(1), "{failed:?}");
    assert!(
        unfolded(&failed.stdout).contains("still running after 5 s, and was killed (--timeout)"),
        "{failed:?}"
    );
    is_clean(&lab);
}

/// Debian's kernel whose words for the first process are changed, so that it finds none: its real panic.
#[test]
fn debians_kernel_without_a_first_process_panics_in_its_own_words() {
    let kernel = match kernel_of_lane() {
        Ok(kernel) => kernel,
        Err(why) => return skipped(why),
    };
    let lab = laboratory();
    let first = lab.compare(&format!("calls.c --abi x86-64 --kernel {kernel}"));
    assert_eq!(first.status, Some(0), "{first:?}");
    let folders = std::fs::read_dir(lab.path(".widthwise/kernels/unpacked")).unwrap();
    let folder = folders.flatten().next().unwrap().path();
    let mut image = std::fs::read(folder.join("vmlinux")).unwrap();
    // "/sbin/init" and the like end with the same string.
    for word in [b"rdinit=\0".as_slice(), b"/init\0", b"/bin/sh\0"] {
        let places: Vec<usize> =
            image.windows(word.len()).enumerate().filter(|(_, at)| at == &word).map(|(at, _)| at).collect();
        assert!(!places.is_empty(), "{word:?}");
        places.iter().for_each(|at| image[*at + word.len() - 2] = b'#');
    }
    replace(&folder, &image);
    let failed = lab.compare(&format!("calls.c --abi x86-64 --kernel {kernel}"));
    assert_eq!(failed.status, Some(1), "{failed:?}");
    let text = unfolded(&failed.stdout);
    assert!(
        text.contains("ended early; its console:") && text.contains("Kernel panic - not syncing"),
        "{text}"
    );
    is_clean(&lab);
}

/// Replaces the kernel that was unpacked into a folder.
fn replace(folder: &Path, image: &[u8]) {
    std::fs::write(folder.join("vmlinux"), image).unwrap();
    std::fs::write(folder.join("vmlinux.blake3"), blake3::hash(image).to_hex().as_bytes()).unwrap();
}
