//! The structure that ARCHITECTURE.md describes: every file it names exists, crates import only what its table says, and
//! no module imports itself through others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn architecture() -> String {
    std::fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap()
}

/// The words in backquotes.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The cells of the table rows after that heading.
fn rows(text: &str, heading: &str) -> Vec<Vec<String>> {
    let section = text.split(heading).nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    section.lines().filter(|line| line.starts_with("| ")).skip(1).map(cells).collect()
}

#[test]
fn every_behaviour_of_the_list_has_a_file() {
    let rows = rows(&architecture(), "\n## Where do I find\n");
    let behaviours = rows.iter().filter(|row| !row[0].starts_with("---")).count();
    assert!(behaviours >= 40, "{behaviours}");
    for row in rows.iter().filter(|row| !row[0].starts_with("---")) {
        let files: Vec<&str> = code(&row[1]).collect();
        assert!(!files.is_empty(), "{row:?}");
        for file in files {
            assert!(repository().join(file).exists(), "{}: there is no {file}", row[0]);
        }
    }
}

/// The paths of all files of the folder and those below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Of a file's path, the text has at least the end.
#[test]
fn every_source_file_in_the_text_exists() {
    let folders = ["bench", "crates", "runtime", "sim/src", "sim/include", "tests", "window"];
    let all: Vec<PathBuf> = folders.iter().flat_map(|folder| files(&repository().join(folder))).collect();
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(repository().join(page)).unwrap();
        let is_source = |name: &&str| {
            let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
            is_name && [".rs", ".c", ".h", ".S"].iter().any(|ending| name.ends_with(ending))
        };
        let names: Vec<&str> = code(&text).filter(is_source).filter(|name| !name.contains("VERB")).collect();
        assert!(names.len() > 20, "{page}: {names:?}");
        for name in names {
            assert!(all.iter().any(|path| path.ends_with(name)), "{page}: there is no {name}");
        }
    }
}

#[test]
fn a_crate_depends_on_what_the_table_says() {
    let text = architecture();
    let mut named = BTreeSet::new();
    for row in rows(&text, "# Architecture\n") {
        let Some(name) = code(&row[0]).next().and_then(|path| path.strip_prefix("crates/")) else { continue };
        named.insert(name.to_owned());
        if row[2] == "everything" {
            continue;
        }
        let allowed: BTreeSet<&str> = code(&row[2]).collect();
        let manifest = repository().join("crates").join(name).join("Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap();
        let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
        let section = section.split("\n[").next().unwrap();
        let uses = section.lines().filter_map(|line| line.strip_prefix("widthwise-")?.split(' ').next());
        assert_eq!(uses.collect::<BTreeSet<&str>>(), allowed, "crates/{name}");
    }
    let folders = std::fs::read_dir(repository().join("crates")).unwrap();
    let folders: BTreeSet<String> =
        folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(named, folders);
}

/// The modules of a crate with their text, without comments and tests.
fn modules(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().with_extension("");
            let name = name.to_str().unwrap().replace('/', "::");
            let is_module = path.extension().is_some_and(|extension| extension == "rs");
            if is_module && !name.ends_with("tests") && name != "lib" && name != "main" {
                found.insert(name, without_comments(&path));
            }
        }
    }
    found
}

fn without_comments(path: &PathBuf) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]").next().unwrap();
    text.lines().map(|line| line.split("//").next().unwrap().to_owned() + "\n").collect()
}

/// The paths that a module's text uses, absolute in the crate: `["run", "launcher", "Launcher"]`.
fn paths(module: &str, text: &str, is_module: &dyn Fn(&str) -> bool) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let own: Vec<String> = module.split("::").map(str::to_owned).collect();
    let mut at = 0;
    while let Some(word) = text[at..].find(|c: char| c.is_ascii_alphabetic() || c == '_') {
        let begin = at + word;
        let end = text[begin..].find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
        let end = begin + end.unwrap_or(text.len() - begin);
        at = end;
        let path = &text[begin..end];
        if !path.contains("::") {
            continue; // also the words of `pub(crate)` and `pub(super)`
        }
        let mut parts: Vec<String> =
            path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let supers = parts.iter().take_while(|part| *part == "super").count();
        let base = match parts.first().map(String::as_str) {
            Some("crate") => {
                parts.remove(0);
                Vec::new()
            }
            Some("super") => own[..own.len().saturating_sub(supers)].to_vec(),
            Some(first) if is_module(&format!("{module}::{first}")) => own.clone(),
            _ => continue,
        };
        let base: Vec<String> = base.into_iter().chain(parts.split_off(supers.min(parts.len()))).collect();
        if path.ends_with("::") && text[end..].starts_with('{') {
            let (items, length) = items(&text[end + 1..]);
            at = end + 1 + length;
            for item in items {
                let more = item.split("::").filter(|part| *part != "self").map(str::to_owned);
                found.push(base.iter().cloned().chain(more).collect());
            }
        } else {
            found.push(base);
        }
    }
    found
}

/// The items of a list in braces, up to the brace that ends it, and how long that is. Of an item with a list of its own,
/// the path before it.
fn items(text: &str) -> (Vec<String>, usize) {
    let (mut depth, mut items, mut item) = (1, Vec::new(), String::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => items.push(std::mem::take(&mut item)),
            c if depth == 1 && (c.is_ascii_alphanumeric() || c == '_' || c == ':') => item.push(c),
            _ => {}
        }
        if depth == 0 {
            items.push(item);
            items.retain(|item| !item.is_empty());
            return (items, at + 1);
        }
    }
    (items, text.len())
}

/// The modules that each module imports.
fn imports(modules: &BTreeMap<String, String>) -> BTreeMap<&str, BTreeSet<&str>> {
    let is_module = |name: &str| modules.contains_key(name);
    let nearest = |mut path: Vec<String>| {
        while !path.is_empty() {
            if let Some((name, _)) = modules.get_key_value(&path.join("::")) {
                return Some(name.as_str());
            }
            path.pop();
        }
        None
    };
    modules
        .iter()
        .map(|(name, text)| {
            let used = paths(name, text, &is_module).into_iter().filter_map(nearest);
            (name.as_str(), used.filter(|used| used != name).collect())
        })
        .collect()
}

/// The modules that import themselves through others.
fn in_rings<'a>(imports: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<&'a str> {
    let reaches_itself = |start: &str| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&str> = imports[start].iter().copied().collect();
        while let Some(module) = next.pop() {
            if seen.insert(module) {
                next.extend(&imports[module]);
            }
        }
        seen.contains(start)
    };
    imports.keys().copied().filter(|module| reaches_itself(module)).collect()
}

#[test]
fn a_ring_of_imports_is_found() {
    let text = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    };
    let ring = text(&[
        ("a", "use crate::{b::{self, C}, d};"),
        ("b", "use e::X;"),
        ("b::e", "fn f() { super::super::a::g() }"),
        ("d", ""),
    ]);
    assert_eq!(in_rings(&imports(&ring)), ["a", "b", "b::e"]);
    let none = text(&[
        ("a", "use std::b::C; use crate::b::C;"),
        ("b", "use e::X;"),
        ("b::e", "use crate::d;"),
        ("d", ""),
    ]);
    assert_eq!(in_rings(&imports(&none)), Vec::<&str>::new());
}

#[test]
fn no_module_imports_itself_through_others() {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(repository().join("crates")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let modules = modules(&entry.path().join("src"));
        let rings = in_rings(&imports(&modules)).into_iter().map(|module| format!("{name}::{module}"));
        found.extend(rings);
    }
    assert_eq!(found, Vec::<String>::new());
}

/// Languages of blocks in documentation that are no example to be compiled.
const NO_EXAMPLES: [&str; 4] = ["```text", "```sh", "```toml", "```json"];

#[test]
fn a_crate_whose_examples_are_not_tested_has_none() {
    let mut crates = 0;
    for entry in std::fs::read_dir(repository().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        if !manifest.contains("\ndoctest = false\n") {
            continue;
        }
        crates += 1;
        for file in
            files(&folder.join("src")).iter().filter(|file| file.extension().is_some_and(|e| e == "rs"))
        {
            let text = std::fs::read_to_string(file).unwrap();
            let comments = text.lines().filter_map(|line| line.trim_start().strip_prefix("//"));
            let documentation = comments.filter_map(|line| line.strip_prefix(['/', '!'])).map(str::trim);
            let mut begins = documentation.filter(|line| line.starts_with("```")).step_by(2);
            let example = begins.any(|fence| !NO_EXAMPLES.contains(&fence));
            assert!(!example, "{} has an example: remove `doctest = false`", file.display());
        }
    }
    assert!(crates > 0);
}

/// The Makefile runs the programs of tests in groups, and names each.
#[test]
fn make_test_runs_every_program_of_tests_once() {
    let words = ["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"];
    let printed =
        std::process::Command::new(env!("CARGO")).args(words).current_dir(repository()).output().unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&printed.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let targets = packages.flat_map(|package| package["targets"].as_array().unwrap());
    let mut programs: Vec<&str> = targets
        .filter(|target| target["kind"][0] == "test")
        .map(|target| target["name"].as_str().unwrap())
        .collect();
    let makefile = std::fs::read_to_string(repository().join("Makefile")).unwrap();
    let groups = makefile.split("PROGRAM_TESTS = ").nth(1).and_then(|rest| rest.split("\n#").next()).unwrap();
    let mut run: Vec<&str> =
        groups.split("--test ").skip(1).filter_map(|rest| rest.split_whitespace().next()).collect();
    programs.sort_unstable();
    run.sort_unstable();
    assert_eq!(run, programs);
}

/// Cargo does not look for programs of tests in these folders: a file that none of them names is never compiled.
#[test]
fn every_file_of_tests_is_part_of_a_program() {
    let mut folders = vec![(repository().join("tests"), vec![])];
    for entry in std::fs::read_dir(repository().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let paths = manifest.lines().filter_map(|line| line.strip_prefix("path = \"")?.strip_suffix(".rs\""));
        let paths: Vec<&str> = paths.collect();
        let below = |folder: &str| -> Vec<String> {
            paths.iter().filter_map(|path| Some(path.strip_prefix(folder)?.to_owned())).collect()
        };
        folders[0].1.extend(below("../../tests/"));
        let own = below("tests/");
        if !own.is_empty() {
            folders.push((folder.join("tests"), own));
        }
    }
    assert!(folders.len() > 4 && folders[0].1.len() > 2, "{folders:?}");
    for (folder, programs) in folders {
        let text = |program: &String| std::fs::read_to_string(folder.join(format!("{program}.rs"))).unwrap();
        let all: String = programs.iter().map(text).collect();
        let files = files(&folder).into_iter().filter(|file| file.parent() == Some(&folder));
        for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "rs")) {
            let stem = file.file_stem().unwrap().to_str().unwrap();
            let is_part =
                programs.iter().any(|program| program == stem) || all.contains(&format!("mod {stem};"));
            assert!(is_part, "{} is in no program of tests: add `mod {stem};`", file.display());
        }
    }
}

/// The fuzz targets are a workspace of their own, which `make test` does not build: its lock file and its header files follow the crates.
#[test]
fn the_fuzz_targets_have_the_dependencies_and_header_files_of_the_program() {
    let read = |path: &str| std::fs::read_to_string(repository().join(path)).unwrap();
    let lock: toml::Table = read("fuzz/Cargo.lock").parse().unwrap();
    let packages = lock["package"].as_array().unwrap().iter();
    let mut crates = 0;
    for package in packages {
        let Some(name) = package["name"].as_str().unwrap().strip_prefix("widthwise-") else { continue };
        if !repository().join("crates").join(name).exists() {
            continue;
        }
        let none = toml::Value::Array(Vec::new());
        let listed = package.get("dependencies").unwrap_or(&none).as_array().unwrap().iter();
        // A name that several versions have is followed by its version.
        let listed: Vec<&str> = listed.filter_map(|one| one.as_str()?.split(' ').next()).collect();
        let manifest: toml::Table = read(&format!("crates/{name}/Cargo.toml")).parse().unwrap();
        let used = manifest.get("dependencies").and_then(toml::Value::as_table);
        for dependency in used.into_iter().flat_map(toml::Table::keys) {
            let has_it = listed.contains(&dependency.as_str());
            assert!(has_it, "{name} uses {dependency}: `cargo check` in fuzz/ writes its lock file anew");
        }
        crates += 1;
    }
    assert!(crates > 2, "{crates} crates");
    let source = read("fuzz/x32_image.c");
    for line in source.lines().filter_map(|line| line.strip_prefix("#include \"")) {
        let header = line.trim_end_matches('"');
        let path = repository().join("runtime/x32").join(header);
        assert!(path.exists(), "fuzz/x32_image.c includes {header}, which runtime/x32 does not have");
    }
}
