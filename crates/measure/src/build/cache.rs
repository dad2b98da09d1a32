//! Builds a variant, or finds its cached build, by a digest of all inputs.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use widthwise_experiment::placeholder;

use crate::build::order::{BuildError, Built, Order, Training};
use crate::build::profile::train;
use crate::build::stage::make;
use crate::build::toolchain::Stage;

/// Changes when the way of building changes, so that old builds are not reused.
const FORMAT: &str = "1";

#[derive(Serialize, Deserialize)]
struct Done {
    seconds: f64,
}

/// Builds a variant, or finds its cached build. Several variants and several processes may do so at the same
/// time.
pub fn build(order: &Order, cache: &Path) -> Result<Built, BuildError> {
    let folder = cache.join("builds").join(folder(order));
    let failed = |path: &Path, error: std::io::Error| BuildError::Folder {
        path: path.to_owned(),
        error: error.to_string(),
    };
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    let _lock = lock(&folder.join("lock")).map_err(|error| failed(&folder, error))?;
    let (tree, log, done) = (folder.join("tree"), folder.join("log"), folder.join("done"));
    let plain = order.variables(Stage::Plain);
    let flags = match (&plain["CFLAGS"], &plain["CXXFLAGS"]) {
        (c, cxx) if c == cxx => c.clone(),
        (c, cxx) => format!("{c} (C++: {cxx})"),
    };
    if let Some(Done { seconds }) = fs::read(&done).ok().and_then(|text| serde_json::from_slice(&text).ok()) {
        return Ok(Built { tree, log, seconds, cached: true, flags });
    }
    let began = Instant::now();
    fs::write(&log, "").map_err(|error| failed(&log, error))?;
    if order.variant.flags.profile_guided {
        let profile = folder.join("profile");
        let _ = fs::remove_dir_all(&profile);
        fs::create_dir_all(&profile).map_err(|error| failed(&profile, error))?;
        make(order, &tree, &log, Stage::Instrumented(&profile))?;
        train(order, &tree, &log, &profile)?;
        make(order, &tree, &log, Stage::Guided(&profile))?;
    } else {
        make(order, &tree, &log, Stage::Plain)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let text = serde_json::to_vec(&Done { seconds }).unwrap_or_default();
    // Renamed into place, so that the file is complete or absent.
    let partial = folder.join("done.partial");
    fs::write(&partial, text)
        .and_then(|()| fs::rename(&partial, &done))
        .map_err(|error| failed(&done, error))?;
    Ok(Built { tree, log, seconds, cached: false, flags })
}

/// The name of a build's folder. Variants whose builds have equal inputs share it.
pub fn folder(order: &Order) -> String {
    format!("{}-{}", order.slug, &key(order)[..12])
}

/// A digest of all inputs of a build.
fn key(order: &Order) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(FORMAT.as_bytes());
    part(order.source.digest.as_bytes());
    part(order.source.path.as_os_str().as_bytes());
    let command = order.source.build.text();
    part(command.as_bytes());
    // A command that receives the variant's name may build something else for each.
    let uses_name = placeholder::used(&command).any(|word| word == "variant");
    part(if uses_name { order.variant.name.as_bytes() } else { b"" });
    part(order.compiler.identity().as_bytes());
    match &order.training {
        None => part(b""),
        Some(Training::Shell(text)) => part(text.as_bytes()),
        Some(Training::Words(words)) => words.iter().for_each(|word| part(word.as_bytes())),
    }
    part(if order.variant.flags.profile_guided { b"guided" } else { b"" });
    for (name, value) in order.variables(Stage::Plain) {
        part(name.as_bytes());
        part(value.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// Held until dropped.
fn lock(path: &Path) -> std::io::Result<File> {
    let file = File::options().create(true).append(true).open(path)?;
    file.lock()?;
    Ok(file)
}
