//! The x32 runtime, `x32run`, carried as bytes: it runs x32 programs (ELFCLASS32, EM_X86_64) in user space, on kernels
//! that have no x32. Its source is `runtime/x32`; `docs/x32.md` says how it works.
//!
//! This crate knows nothing of experiments or machines: it hands out the binary, and says whether it is needed.

mod account;
mod place;
mod registration;
mod valgrind_runtime;

pub use account::{Account, Costs, Image, ImageEnd, SlowCalls, ACCOUNT_SIZE, FIRST_RECORD};
pub use place::{cache_folder, command_line, is_x32, place, place_gdb_script, place_in, runtime_for};
pub use registration::{register, registered, unregister, RegistrationError};
pub use valgrind_runtime::runtime_under_valgrind;

/// The static binary for x86-64.
pub const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/x32run"));

/// What gdb needs to see x32 programs in the process that the runtime is, in gdb's own Python.
pub const GDB_SCRIPT: &str = include_str!("../../../runtime/x32/gdb.py");

/// Whether this kernel runs x32 programs by itself: whether it answers a call that carries the x32 bit.
///
/// Any 64-bit process may make one (`arch/x86/entry/common.c`, `do_syscall_x32`); a kernel without x32, or with x32
/// switched off, says ENOSYS.
pub fn kernel_has_x32() -> bool {
    const GETPID_X32: i64 = 0x4000_0000 + 39;
    let answer: i64;
    // SAFETY: getpid takes nothing and touches no memory; on a kernel without x32 the number is refused.
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") GETPID_X32 => answer, out("rcx") _, out("r11") _, options(nostack));
    }
    answer > 0
}
