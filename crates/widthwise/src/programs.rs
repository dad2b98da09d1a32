//! What the words that name the program mean: a source, a folder, a package, a spec file, or finished programs.

use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};

use widthwise_experiment::names::check_name;
use widthwise_experiment::request::Request;
use widthwise_experiment::source::Language;
use widthwise_experiment::{bytes, Located, ProgramSource, SourceLocation};

use crate::failure::Failure;

/// Scripts by their names' ends, and what starts them.
const INTERPRETERS: [(&str, &str); 7] = [
    ("py", "python3"),
    ("pl", "perl"),
    ("rb", "ruby"),
    ("lua", "lua"),
    ("js", "node"),
    ("sh", "sh"),
    ("awk", "awk -f"),
];

/// What a word names, as far as its file says.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// Something that is built.
    Source,
    /// Something that the kernel starts: an ELF file, or a script with a first line `#!` that may be executed.
    Finished,
    /// A script that needs this to be started.
    Script(String),
    /// An ELF file that is no program: an object file.
    NoProgram(&'static str),
    /// A pipe, a socket or a device.
    Special(&'static str),
    /// A file of none of these kinds.
    Other,
}

/// What a file is that is neither a regular file nor a folder.
pub fn special(data: &Metadata) -> Option<&'static str> {
    let kind = data.file_type();
    if kind.is_fifo() {
        Some("a pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_char_device() || kind.is_block_device() {
        Some("a device")
    } else {
        None
    }
}

/// Whether a word names a spec file.
pub fn is_spec(program: &str) -> bool {
    program.ends_with(".toml")
}

/// Adds what the words name to a request; `is_built` and `has_run` say whether there are build and run commands.
pub fn say(programs: &[String], is_built: bool, has_run: bool, request: &mut Request) -> Result<(), Failure> {
    let location = SourceLocation::Flag("program");
    if let Some(reason) = programs.iter().find_map(|program| misnamed(program, is_built)) {
        return Err(Failure::request(reason));
    }
    match programs {
        [] => Ok(()),
        [program] if is_spec(program) => Ok(()),
        [program] => {
            let kind = if is_built { Kind::Source } else { kind(program) };
            match kind {
                Kind::Source => {
                    let source = ProgramSource::parse(program)
                        .map_err(|kind_of_error| Failure::request(location.wrong(kind_of_error)))?;
                    request.program.source = Some(Located::new(source, location));
                    Ok(())
                }
                Kind::Finished => finished(programs, request),
                Kind::Script(_) | Kind::Other if has_run => finished(programs, request),
                kind => Err(refused(program, &kind)),
            }
        }
        several => {
            let mut others = Vec::new();
            for program in several {
                match kind(program) {
                    Kind::Finished => {}
                    Kind::Script(_) | Kind::Other if has_run && !is_spec(program) => {}
                    Kind::Source | Kind::Other => others.push(bytes::shown(program)),
                    kind => return Err(refused(program, &kind)),
                }
            }
            if !others.is_empty() {
                return Err(not_finished(&others));
            }
            finished(several, request)
        }
    }
}

/// Each is a variant of its own, named after its file, or its path where two files have one name.
fn finished(programs: &[String], request: &mut Request) -> Result<(), Failure> {
    let file_name = |program: &String| bytes::path(program).file_name().map(bytes::text).unwrap_or_default();
    let is_clear = |name: &String| programs.iter().filter(|other| file_name(other) == *name).count() == 1;
    for (number, program) in programs.iter().enumerate() {
        let name = Some(file_name(program)).filter(is_clear).unwrap_or_else(|| program.clone());
        let name = match check_name("binary", &name) {
            Ok(()) => name,
            Err(_) => format!("program {}", number + 1),
        };
        let location = SourceLocation::Flag("program");
        let file = Located::new(bytes::path(program), location.clone());
        request.program.add_binary(Located::new(name, location), file).map_err(Failure::request)?;
    }
    Ok(())
}

fn kind(program: &str) -> Kind {
    let path = bytes::path(program);
    let is_package = program.starts_with("debian:");
    let Some(data) = std::fs::metadata(&path).ok().filter(|data| !data.is_dir() && !is_package) else {
        return Kind::Source;
    };
    if let Some(what) = special(&data) {
        return Kind::Special(what);
    }
    if Language::of(&path).is_some() {
        return Kind::Source;
    }
    let mut metadata = [0; 256];
    let read = std::fs::File::open(&path).and_then(|mut file| file.read(&mut metadata)).unwrap_or(0);
    let may_be_started = data.permissions().mode() & 0o111 != 0;
    if metadata.starts_with(b"\x7fELF") {
        return match (u16::from_le_bytes([metadata[16], metadata[17]]), may_be_started) {
            (1 | 0x100, _) => Kind::NoProgram("is an object file, and no program yet: link it"),
            (_, true) => Kind::Finished,
            (_, false) => Kind::NoProgram("may not be executed (chmod +x)"),
        };
    }
    if let Some(rest) = metadata[..read].strip_prefix(b"#!") {
        let line = String::from_utf8_lossy(rest.split(|&byte| byte == b'\n').next().unwrap_or_default());
        let interpreter = line.trim().trim_start_matches("/usr/bin/env ").to_owned();
        return if may_be_started { Kind::Finished } else { Kind::Script(interpreter) };
    }
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    match INTERPRETERS.iter().find(|(known, _)| *known == end) {
        Some((_, interpreter)) => Kind::Script((*interpreter).to_owned()),
        None => Kind::Other,
    }
}

/// What to write instead of a word that is no file, but a command or a file that the build will make.
fn misnamed(program: &str, is_built: bool) -> Option<String> {
    let is_other = is_spec(program) || program.starts_with("debian:");
    if is_other || program.starts_with(['.', '/']) || bytes::path(program).symlink_metadata().is_ok() {
        return None;
    }
    let shown = bytes::shown(program);
    if is_built {
        let run = format!("{{build}}/{shown}");
        let run = shell_words::quote(&run);
        return Some(format!(
            "{shown}: there is no such file; with --build the program is the source's folder, and --run starts what the build \
             makes: widthwise compare . --build … --run {run}"
        ));
    }
    if program.contains('/') {
        return None;
    }
    let file = widthwise_measure::program::find(&bytes::os(program), std::path::Path::new("")).ok()?;
    Some(format!(
        "{shown}: there is no such file here; the command of that name is {}",
        bytes::shown_path(&file)
    ))
}

fn refused(program: &str, kind: &Kind) -> Failure {
    let shown = bytes::shown(program);
    let word = shell_words::quote(&shown);
    Failure::request(match kind {
        Kind::Script(interpreter) => format!(
            "{shown} is a script, which needs a run command: widthwise compare {word} --run {}",
            shell_words::quote(&format!("{interpreter} {{binary}}"))
        ),
        Kind::NoProgram(reason) => format!("{shown} {reason}"),
        Kind::Special(what) => format!("{shown} is {what}, and neither a source nor a program"),
        _ => format!(
            "{shown} is no C or C++ file (.c, .cc, .cpp, .cxx), no folder, no spec file (.toml) and no program; if something \
             else starts it, name that: widthwise compare {word} --run 'COMMAND {{binary}}'"
        ),
    })
}

fn not_finished(others: &[String]) -> Failure {
    let are = if others.len() == 1 { "is none" } else { "are none" };
    Failure::request(format!(
        "several programs are compared as they are, finished, and {} {are}; a source is compared alone, over --abi, \
         --compiler and --flags, and words after `--` are the program's arguments",
        others.join(", ")
    ))
}
