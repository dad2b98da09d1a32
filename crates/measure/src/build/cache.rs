//! Builds a variant, or finds its cached build, by a digest of all inputs.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Instant, SystemTime};

use serde::{Deserialize, Serialize};
use widthwise_experiment::model::Build;
use widthwise_experiment::placeholder;
use widthwise_machine::processor::Processor;

use crate::build::dependencies::{self, Dependencies};
use crate::build::order::{BuildError, Built, Order, Training};
use crate::build::profile::train;
use crate::build::stage::make;
use crate::build::static_libraries;
use crate::build::toolchain::Stage;

/// Changes when the way of building changes, so that old builds are not reused.
const FORMAT: &str = "1";

#[derive(Serialize, Deserialize)]
struct Done {
    seconds: f64,
    /// What our own call of the compiler read; absent for a command of the user, whose source is a folder with all that it needs.
    dependencies: Option<Dependencies>,
}

impl Done {
    /// Whether the same build would be made now.
    fn is_current(&self, order: &Order) -> bool {
        let is_compiled = matches!(order.source.build, Build::Compile { .. });
        !is_compiled || self.dependencies.as_ref().is_some_and(dependencies::are_current)
    }
}

fn failed(path: &Path, error: std::io::Error) -> BuildError {
    BuildError::Folder { path: path.to_owned(), error: error.to_string() }
}

/// Builds a variant, or finds its cached build. Several variants and several processes may do so at the same
/// time.
pub fn build(order: &Order, cache: &Path) -> Result<Built, BuildError> {
    let mut name = folder(order);
    loop {
        let folder = cache.join("builds").join(&name);
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        let _lock = lock(&folder.join("lock")).map_err(|error| failed(&folder, error))?;
        let text = fs::read(folder.join("done")).unwrap_or_default();
        let Ok(done) = serde_json::from_slice::<Done>(&text) else { return build_in(&folder, order) };
        if done.is_current(order) {
            return Ok(built(&folder, order, done.seconds, true));
        }
        // What it includes has changed. The program stays: another campaign may be measuring it.
        name = format!("{}-{}", order.slug, &successor(&name, &text)[..12]);
    }
}

/// Builds a variant in this folder.
fn build_in(folder: &Path, order: &Order) -> Result<Built, BuildError> {
    let (tree, log, done) = (folder.join("tree"), folder.join("log"), folder.join("done"));
    let (began, began_at) = (Instant::now(), SystemTime::now());
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
    let is_compiled = matches!(order.source.build, Build::Compile { .. });
    let dependencies = is_compiled.then(|| dependencies::read(&tree, began_at));
    let text = serde_json::to_vec(&Done { seconds, dependencies }).unwrap_or_default();
    // Renamed into place, so that the file is complete or absent.
    let partial = folder.join("done.partial");
    fs::write(&partial, text)
        .and_then(|()| fs::rename(&partial, &done))
        .map_err(|error| failed(&done, error))?;
    Ok(built(folder, order, seconds, false))
}

/// The finished build in this folder.
fn built(folder: &Path, order: &Order, seconds: f64, cached: bool) -> Built {
    let plain = order.variables(Stage::Plain);
    let flags = match (&plain["CFLAGS"], &plain["CXXFLAGS"]) {
        (c, cxx) if c == cxx => c.clone(),
        (c, cxx) => format!("{c} (C++: {cxx})"),
    };
    Built { tree: folder.join("tree"), log: folder.join("log"), seconds, cached, flags }
}

/// What names the folder of the next build after the one in this folder, which ended with this record.
fn successor(name: &str, done: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(name.as_bytes()).update(done);
    hasher.finalize().to_hex().to_string()
}

/// The name of a build's folder, unless what a single file includes has changed since. Variants whose builds have equal inputs share it.
pub fn folder(order: &Order) -> String {
    format!("{}-{}", order.slug, &key(order, Processor::here())[..12])
}

/// A digest of all inputs of a build on this processor.
fn key(order: &Order, processor: &Processor) -> String {
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
        Some(Training::Run(command)) => command.identity().iter().for_each(|word| part(word.as_bytes())),
    }
    part(if order.variant.flags.profile_guided { b"guided" } else { b"" });
    let variables = order.variables(Stage::Plain);
    for (name, value) in &variables {
        part(name.as_bytes());
        part(value.as_bytes());
    }
    part(processor.model.as_bytes());
    let has = |word: &str| command.contains(word) || variables.values().any(|value| value.contains(word));
    part(if has("native") { processor.features.as_bytes() } else { b"" });
    // The user's own command may link statically without a word of it here.
    let may_be_static = has("-static") || matches!(order.source.build, Build::Shell(_));
    let libraries = |name| static_libraries::identity(&variables[name]);
    part(if may_be_static { libraries("CC") } else { String::new() }.as_bytes());
    hasher.finalize().to_hex().to_string()
}

/// Held until dropped.
fn lock(path: &Path) -> std::io::Result<File> {
    let file = File::options().create(true).append(true).open(path)?;
    file.lock()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::source::Source;
    use widthwise_experiment::{spec, Facts};
    use widthwise_machine::{abi, compiler};

    #[test]
    fn another_processor_has_a_build_of_its_own() {
        let text = "[program]\nsource = \"x.c\"\n[axes]\nflags = [\"-O2\", \"native\"]\n";
        let request = spec::parse(text, "widthwise.toml").unwrap();
        let experiment = request.resolve(&Facts::default()).unwrap();
        let compilers = compiler::discover();
        let build = Build::Shell("make".into());
        let source = Source { path: "x.c".into(), build, version: String::new(), digest: String::new() };
        let processor =
            |model: &str, features: &str| Processor { model: model.into(), features: features.into() };
        for (variant, depends_on_features) in experiment.variants.iter().zip([false, true]) {
            let order = Order {
                variant,
                abi: &abi::ABIS[0],
                compiler: &compilers[0],
                source: &source,
                training: None,
                slug: String::new(),
                layout: None,
                jobs: 1,
            };
            let here = key(&order, &processor("A", "avx512"));
            assert_eq!(here, key(&order, &processor("A", "avx512")));
            assert_ne!(here, key(&order, &processor("B", "avx512")), "{}", variant.name);
            assert_eq!(here != key(&order, &processor("A", "avx2")), depends_on_features, "{}", variant.name);
        }
    }
}
