//! The counting plugin: its source is embedded, and compiled on the machine whose QEMU loads it.

use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;
use widthwise_experiment::bytes;
use widthwise_machine::compiler::Compiler;

use crate::passes::emulated_machine::options::Options;

const SOURCE: [(&str, &str); 5] = [
    ("plugin.c", include_str!("../../../../../runtime/plugin/plugin.c")),
    ("cache.h", include_str!("../../../../../runtime/plugin/cache.h")),
    ("caches.h", include_str!("../../../../../runtime/plugin/caches.h")),
    ("instructions.h", include_str!("../../../../../runtime/plugin/instructions.h")),
    ("qemu.h", include_str!("../../../../../runtime/plugin/qemu.h")),
];
const NAME: &str = "libwidthwise-count.so";

/// The plugin could not be made.
#[derive(Debug, Error)]
pub enum PluginError {
    /// Its folder cannot be used.
    #[error("{}: {error}", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// QEMU separates a plugin's options by commas.
    #[error("QEMU cannot load its plugin from {}: no comma may stand in its path; set XDG_CACHE_HOME to another \
             folder", .0.display())]
    Unnameable(PathBuf),
    /// It does not compile.
    #[error("the plugin of QEMU that counts instructions does not build: {0}")]
    Compiler(String),
}

/// The plugin's file.
#[derive(Debug, Clone)]
pub struct Plugin {
    file: PathBuf,
}

impl Plugin {
    /// Builds the plugin, unless it is in the user's cache already, in a folder named after source and compiler.
    ///
    /// # Errors
    /// The folder cannot be written, or the compiler fails.
    pub fn place(compiler: &Compiler) -> Result<Plugin, PluginError> {
        let mut digest = blake3::Hasher::new();
        for (name, text) in SOURCE {
            digest.update(name.as_bytes()).update(text.as_bytes());
        }
        digest.update(compiler.identity().as_bytes());
        let name = format!("qemu-plugin-{}", &digest.finalize().to_hex()[..16]);
        let folder = widthwise_x32run::cache_folder()
            .map_err(|error| PluginError::Folder { path: "the cache folder".into(), error })?
            .join(name);
        if folder.to_string_lossy().contains(',') {
            return Err(PluginError::Unnameable(folder));
        }
        let file = folder.join(NAME);
        if !file.exists() {
            build(&folder, compiler)?;
        }
        Ok(Plugin { file })
    }

    /// The value of `-plugin`: the counts go to the file `out`; the kernel, of a whole machine, begins at the address `split`.
    pub fn option(&self, out: &Path, split: Option<u64>, options: &Options) -> std::ffi::OsString {
        let mut text = format!("{},out={}", bytes::text(&self.file), bytes::text(out).replace(',', ",,"));
        if let Some(split) = split {
            text += &format!(",split={split:#x}");
        }
        if options.classify.is_some() {
            text += ",instructions=on";
        }
        if let (Some(caches), Some(_)) = (&options.caches, split) {
            text += &format!(",{caches}");
        }
        bytes::os(&text)
    }
}

fn build(folder: &Path, compiler: &Compiler) -> Result<(), PluginError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| PluginError::Folder { path, error }
    };
    let own = folder.join(format!("source-{}", std::process::id()));
    std::fs::create_dir_all(&own).map_err(failed(&own))?;
    for (name, text) in SOURCE {
        let path = own.join(name);
        std::fs::write(&path, text).map_err(failed(&path))?;
    }
    let partial = own.join(NAME);
    // Its messages are searched for a word.
    let done = Command::new(&compiler.cc)
        .env("LC_ALL", "C")
        .args(["-std=gnu17", "-O2", "-fPIC", "-shared", "-o"])
        .arg(&partial)
        .arg(own.join("plugin.c"))
        .output()
        .map_err(failed(&compiler.cc))?;
    let result = if done.status.success() {
        let file = folder.join(NAME);
        std::fs::rename(&partial, &file).map_err(failed(&file))
    } else {
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        let line = text.lines().find(|line| line.contains("error")).or(text.lines().next());
        Err(PluginError::Compiler(line.unwrap_or("the compiler failed").trim().to_owned()))
    };
    let _ = std::fs::remove_dir_all(&own);
    result
}
