//! The heap recorder for every ABI that this machine can build for. Its source is embedded and compiled on
//! demand, since only an ABI's own compiler and C library can make a shared object for it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;
use widthwise_machine::abi::{AbiRow, ABIS};
use widthwise_machine::compiler::Compiler;

macro_rules! carried {
    ($($name:literal),*) => {
        &[$(($name, include_str!(concat!("../../../../../runtime/heap/", $name)))),*]
    };
}

/// The recorder's source, file by file.
const SOURCE: &[(&str, &str)] = carried!(
    "own_stack.c",
    "own_stack.h",
    "descriptors.c",
    "environment.c",
    "environment.h",
    "event.h",
    "hooks.c",
    "jumps.c",
    "kernel.h",
    "lifecycle.c",
    "lifecycle.h",
    "log.h",
    "log_file.c",
    "log_file.h",
    "module.h",
    "modules.c",
    "modules.h",
    "operators.c",
    "processes.c",
    "real_allocator.c",
    "real_allocator.h",
    "recorder.c",
    "recorder.h",
    "stack.c",
    "stack.h",
    "state.c",
    "state.h",
    "unwind_rules.c",
    "unwind_rules.h"
);
const NAME: &str = "libwidthwise-heap.so";
/// The object that is linked into a static program.
const OBJECT: &str = "widthwise-heap.o";
/// The functions that `--wrap` redirects to the linked recorder: `REAL_FUNCTIONS` of real_allocator.h.
const WRAPPED: &[&str] = &[
    "malloc",
    "free",
    "calloc",
    "realloc",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "mmap",
    "mmap64",
    "munmap",
    "mprotect",
    "mremap",
    "close",
    "dup2",
    "dup3",
    "execve",
    "execvpe",
    "fexecve",
    "posix_spawn",
    "posix_spawnp",
    "system",
    "popen",
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "setcontext",
    "_exit",
    "_Exit",
    "quick_exit",
    "daemon",
];

/// No recorder could be made.
#[derive(Debug, Error)]
pub enum RecorderError {
    /// Its folder cannot be used.
    #[error("{}: {error}", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The dynamic linker accepts several names in LD_PRELOAD, separated by spaces and colons.
    #[error("the heap recorder cannot be preloaded from {}: no space and no colon may stand in its path; set \
             XDG_CACHE_HOME to another folder", .0.display())]
    Unnameable(PathBuf),
    /// It cannot be built even for the host.
    #[error("the heap recorder could not be built for any ABI: {0}")]
    None(String),
}

/// A folder with a recorder for each ABI.
#[derive(Debug, Clone)]
pub struct Recorder {
    folder: PathBuf,
    /// ABIs without a recorder, each with the compiler's first error line.
    pub missing: Vec<(&'static str, String)>,
}

impl Recorder {
    /// Builds the missing recorders, in a folder of the user's cache that is named after source and compiler.
    ///
    /// # Errors
    /// The folder cannot be written, or the compiler builds it for no ABI.
    pub fn place(compiler: &Compiler) -> Result<Recorder, RecorderError> {
        let mut digest = blake3::Hasher::new();
        for (name, text) in SOURCE {
            digest.update(name.as_bytes()).update(text.as_bytes());
        }
        digest.update(compiler.identity().as_bytes());
        let name = format!("heap-recorder-{}", &digest.finalize().to_hex()[..16]);
        let folder = widthwise_x32run::cache_folder()
            .map_err(|error| RecorderError::Folder { path: "the cache folder".into(), error })?
            .join(name);
        if folder.to_string_lossy().contains([' ', ':']) {
            return Err(RecorderError::Unnameable(folder));
        }
        let _only_one = ABIS.iter().any(|abi| !is_built(&folder.join(abi.name))).then(|| only_one(&folder));
        let mut missing = Vec::new();
        for abi in ABIS {
            if let Err(reason) = place_for(&folder, abi, compiler)? {
                missing.push((abi.name, reason));
            }
        }
        if missing.len() == ABIS.len() {
            return Err(RecorderError::None(missing.swap_remove(0).1));
        }
        Ok(Recorder { folder, missing })
    }

    /// The value of LD_PRELOAD. The dynamic linker replaces `$LIB` with the library folder of its ABI
    /// (ld.so(8)), so that every process of a tree finds the recorder of its ABI.
    pub fn preload(&self) -> String {
        preload(&self.folder)
    }

    /// Copies the recorder into that folder, so that the paths of all its mappings begin with the folder's.
    /// Returns the value of LD_PRELOAD.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn copy_to(&self, folder: &Path) -> Result<String, RecorderError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| RecorderError::Folder { path, error }
        };
        if folder.to_string_lossy().contains([' ', ':']) {
            return Ok(self.preload());
        }
        for library_folder in ABIS.iter().flat_map(|abi| abi.library_folders) {
            let name = library_folder.trim_start_matches("usr/");
            let (from, to) = (self.folder.join(name).join(NAME), folder.join(name));
            if from.exists() {
                std::fs::create_dir_all(&to).map_err(failed(&to))?;
                std::fs::copy(&from, to.join(NAME)).map_err(failed(&to))?;
            }
        }
        Ok(preload(folder))
    }

    /// The options that link the recorder into a static program of that ABI.
    pub fn link_options(&self, abi: &AbiRow) -> Option<String> {
        let object = self.folder.join(abi.name).join(OBJECT);
        let wraps: Vec<String> = WRAPPED.iter().map(|name| format!("-Wl,--wrap={name}")).collect();
        // Without the table no unwind entry can be found; gcc leaves it out of static programs.
        let words = wraps.join(" ");
        object.exists().then(|| format!("{} -Wl,--eh-frame-hdr {words}", object.display()))
    }
}

fn preload(folder: &Path) -> String {
    format!("{}/$LIB/{NAME}", folder.display())
}

/// Until the result is dropped, other processes that build in the folder wait, and then find what this one built: a build takes
/// seconds. On a file system without locks they build beside it, which harms nothing.
fn only_one(folder: &Path) -> Option<File> {
    std::fs::create_dir_all(folder).ok()?;
    let lock = File::create(folder.join("lock")).ok()?;
    lock.lock().is_ok().then_some(lock)
}

fn is_built(own: &Path) -> bool {
    own.join(NAME).exists() && own.join(OBJECT).exists()
}

/// Builds for one ABI. `Ok(Err(…))`: the compiler cannot.
fn place_for(folder: &Path, abi: &AbiRow, compiler: &Compiler) -> Result<Result<(), String>, RecorderError> {
    let own = folder.join(abi.name);
    let shared = own.join(NAME);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| RecorderError::Folder { path, error }
    };
    if !is_built(&own) {
        let source = folder.join(format!("source-{}", std::process::id()));
        std::fs::create_dir_all(&source).map_err(failed(&source))?;
        for (name, text) in SOURCE {
            std::fs::write(source.join(name), text).map_err(failed(&source))?;
        }
        std::fs::create_dir_all(&own).map_err(failed(&own))?;
        let built = compile(&source, &own, abi, compiler);
        let _ = std::fs::remove_dir_all(&source);
        if let Err(reason) = built.map_err(failed(&own))? {
            let _ = std::fs::remove_dir_all(&own);
            return Ok(Err(reason));
        }
    }
    // Debian names an ABI's library folder differently for multilib and multiarch.
    for library_folder in abi.library_folders {
        let name = library_folder.trim_start_matches("usr/");
        let link = folder.join(name).join(NAME);
        let above = folder.join(name);
        std::fs::create_dir_all(&above).map_err(failed(&above))?;
        if name != "lib" && !link.exists() {
            let partial = above.join(format!("{NAME}.{}", std::process::id()));
            std::fs::copy(&shared, &partial).map_err(failed(&partial))?;
            std::fs::rename(&partial, &link).map_err(failed(&link))?;
        }
    }
    Ok(Ok(()))
}

fn compile(
    source: &Path,
    own: &Path,
    abi: &AbiRow,
    compiler: &Compiler,
) -> std::io::Result<Result<(), String>> {
    let files: Vec<PathBuf> =
        SOURCE.iter().filter(|(name, _)| name.ends_with(".c")).map(|(name, _)| source.join(name)).collect();
    let common = [
        "-std=gnu17",
        "-O2",
        "-g1",
        "-fvisibility=hidden",
        "-fno-omit-frame-pointer",
        "-fno-stack-protector",
        "-fasynchronous-unwind-tables",
        "-ftls-model=initial-exec",
    ];
    let run = |more: &[&str], inputs: &[PathBuf], output: &Path| -> std::io::Result<Result<(), String>> {
        let partial = output.with_extension(format!("{}", std::process::id()));
        // Its messages are searched for a word.
        let done = Command::new(&compiler.cc)
            .env("LC_ALL", "C")
            .args(abi.options())
            .args(common)
            .args(more)
            .arg("-o")
            .arg(&partial)
            .args(inputs)
            .output()?;
        if done.status.success() {
            std::fs::rename(&partial, output)?;
            return Ok(Ok(()));
        }
        let printed = String::from_utf8_lossy(&done.stderr).into_owned();
        let line = printed.lines().find(|line| line.contains("error")).or(printed.lines().next());
        Ok(Err(line.unwrap_or("the compiler failed").trim().to_owned()))
    };
    let shared = ["-fPIC", "-shared", "-Wl,-z,now", "-Wl,-soname,libwidthwise-heap.so"];
    if let Err(reason) = run(&shared, &files, &own.join(NAME))? {
        return Ok(Err(reason));
    }
    // Combines several objects into one: `ld -r`.
    run(&["-fPIC", "-r", "-nostdlib", "-DWIDTHWISE_HEAP_LINKED"], &files, &own.join(OBJECT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_builds_and_the_next_one_begins_when_it_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache/heap-recorder");
        let first = only_one(&cache).unwrap();
        let other = File::open(cache.join("lock")).unwrap();
        assert!(other.try_lock().is_err());
        drop(first);
        assert!(other.try_lock().is_ok());
    }

    #[test]
    fn a_folder_without_locks_is_used_without_one() {
        assert!(only_one(Path::new("/proc/no/such/folder")).is_none());
    }
}
