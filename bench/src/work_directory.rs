//! Where benchmarks are made: a folder of their own with the programs built in it, and the `widthwise` they measure.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{bail, Context};

/// The folder, removed at the end, and what every benchmark needs to know.
#[derive(Debug)]
pub struct WorkDirectory {
    folder: tempfile::TempDir,
    widthwise: PathBuf,
    /// So few runs that the numbers mean nothing.
    pub quick: bool,
    /// Seed of whatever is random.
    pub seed: u64,
}

impl WorkDirectory {
    /// Opens it. Without a `widthwise` this repository's is built, in the profile that this program has.
    pub fn open(widthwise: Option<PathBuf>, quick: bool, seed: u64) -> anyhow::Result<WorkDirectory> {
        let widthwise = match widthwise {
            Some(file) => std::fs::canonicalize(&file).with_context(|| file.display().to_string())?,
            None => build_widthwise()?,
        };
        Ok(WorkDirectory { folder: tempfile::tempdir()?, widthwise, quick, seed })
    }

    /// The folder in which everything is run.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The root of this repository.
    pub fn repository(&self) -> &'static Path {
        repository()
    }

    /// The folder of the build's, into which packaging/install.sh fetches what is not installed.
    pub fn target(&self) -> anyhow::Result<PathBuf> {
        Ok(own_folder()?.parent().context("this program lies in no target folder")?.to_owned())
    }

    /// A number of runs, or a token one.
    pub fn count(&self, full: u32, quick: u32) -> u32 {
        if self.quick {
            quick
        } else {
            full
        }
    }

    /// Builds a program of known cost; `source` is relative to the repository.
    pub fn build(&self, source: &str, name: &str, options: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new(if source.ends_with(".c") { "gcc" } else { "g++" });
        // Without a build ID, two programs that differ in one number differ in that alone.
        command.args(["-O2", "-Wl,--build-id=none", "-o", name]).args(options).arg(repository().join(source));
        self.output(&mut command).map(drop)
    }

    /// A script in the folder, ready to be started.
    pub fn script(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.folder().join(name);
        std::fs::write(&path, text)?;
        Ok(std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?)
    }

    /// `widthwise` with these arguments.
    pub fn widthwise(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.widthwise);
        command.args(arguments);
        command
    }

    /// Runs a command in the folder to its end; its standard output.
    pub fn output(&self, command: &mut Command) -> anyhow::Result<String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let done = command
            .current_dir(self.folder())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("{name} could not be started"))?;
        if !done.status.success() {
            bail!("{name}: {}\n{}", done.status, String::from_utf8_lossy(&done.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }
}

fn repository() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// Has cargo build `widthwise`, unless it is up to date.
fn build_widthwise() -> anyhow::Result<PathBuf> {
    let status = cargo("build")?
        .args(["--package", "widthwise"])
        .current_dir(repository())
        .status()
        .context("cargo could not be started")?;
    if !status.success() {
        bail!("widthwise could not be built; `--widthwise FILE` names one that is");
    }
    Ok(own_folder()?.join("widthwise"))
}

/// The folder this program was built in: `target/release`.
fn own_folder() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(own.parent().context("this program lies in no folder")?.to_owned())
}

/// A verb of cargo on this repository, in the profile and for the target folder that this program was built in.
pub fn cargo(verb: &str) -> anyhow::Result<Command> {
    let folder = own_folder()?;
    // The cargo that started us, or the one on the PATH.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args([verb, "--quiet", "--manifest-path"]).arg(repository().join("Cargo.toml"));
    command.arg("--target-dir").arg(folder.parent().context("this program lies in no target folder")?);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    Ok(command)
}

/// Words as they would be typed: in quotes only where the shell would make something else of them.
pub fn typed(program: &str, words: &[String]) -> String {
    let is_plain = |word: &&String| {
        !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./=:,%+{}".contains(&byte))
    };
    let quoted = words.iter().map(|word| match Some(word).filter(is_plain) {
        Some(plain) => plain.clone(),
        None => format!("'{}'", word.replace('\'', "'\\''")),
    });
    std::iter::once(program.to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}

/// Words of a command line.
pub fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_a_shell_would_take_apart_stand_in_quotes() {
        let all = words(["--binary", "a=./loop", "--run", "{binary} 7", "it's", ""]);
        assert_eq!(typed("x", &all), r"x --binary a=./loop --run '{binary} 7' 'it'\''s' ''");
    }
}
