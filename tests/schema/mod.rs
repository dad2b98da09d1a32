//! Validates JSON by the schemas of `docs/schema`, with Python's jsonschema.

// Each program of tests uses a part of this.
#![allow(dead_code)]

use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The schema of `report --json`.
pub const REPORT: &str = "report-3.json";
/// The schema of `explain --json`.
pub const EXPLANATION: &str = "explanation-1.json";

/// The errors of a document by a schema, each with its place.
pub fn complaints(schema: &str, document: &Value) -> Vec<String> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut validator = Command::new("python3")
        .arg(repository.join("tests/schema/validate.py"))
        .arg(repository.join("docs/schema").join(schema))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It reads everything before it writes.
    validator.stdin.take().unwrap().write_all(document.to_string().as_bytes()).unwrap();
    let output = validator.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}(`sh packaging/install.sh test` installs python3-jsonschema)");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}
