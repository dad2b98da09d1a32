//! Writes a header's constants and structures as Rust.

use std::fmt::Write;

use crate::header_parser::{Field, Header, Struct, Value};

/// The whole module.
pub fn write(name: &str, header: &Header) -> String {
    let mut text = format!("// Generated from {name}.\n");
    for (constant, value) in &header.constants {
        let _ = match value {
            Value::Number(number) => {
                let kind = if u32::try_from(*number).is_ok() { "u32" } else { "u64" };
                writeln!(text, "/// `{constant}` of `{name}`.\npub const {constant}: {kind} = {number:#x};")
            }
            Value::Text(value) => {
                writeln!(text, "/// `{constant}` of `{name}`.\npub const {constant}: &[u8] = b\"{value}\";")
            }
        };
    }
    for one in &header.structs {
        write_struct(&mut text, name, one);
    }
    text
}

fn write_struct(text: &mut String, header: &str, one: &Struct) {
    let Struct { name, fields, size } = one;
    let rust = camel(name);
    let lines = |line: &dyn Fn(&Field) -> String| fields.iter().map(line).collect::<String>();
    let declared = lines(&|field| {
        format!("    /// At byte {}.\n    pub {}: {},\n", field.offset, field.name, rust_type(field))
    });
    let zeros = lines(&|field| format!("{}: {}, ", field.name, zero(field)));
    let read = lines(&|field| format!("            {}: {},\n", field.name, reading(field)));
    let written = lines(&|field| format!("        {}\n", writing(field)));
    let offsets =
        lines(&|field| format!("        (\"{}\", {}, {}),\n", field.name, field.offset, field.size()));
    let asserted = lines(&|field| {
        format!("const _: () = assert!(std::mem::offset_of!({rust}, {}) == {});\n", field.name, field.offset)
    });
    let _ = writeln!(
        text,
        "/// `struct {name}` of `{header}`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct {rust} {{
{declared}}}

impl {rust} {{
    /// `sizeof(struct {name})`.
    pub const SIZE: usize = {size};
    /// Every field: its name, its offset and its size in bytes.
    pub const FIELDS: &'static [(&'static str, usize, usize)] = &[
{offsets}    ];
    /// All of its bytes are 0.
    pub const ZERO: {rust} = {rust} {{ {zeros}}};

    /// From the first bytes, little-endian; `None` where there are too few.
    pub fn read(bytes: &[u8]) -> Option<{rust}> {{
        let bytes: &[u8; {size}] = bytes.first_chunk()?;
        Some({rust} {{
{read}        }})
    }}

    /// As bytes, little-endian.
    pub fn bytes(&self) -> [u8; {size}] {{
        let mut bytes = [0; {size}];
{written}        bytes
    }}
}}

const _: () = assert!(std::mem::size_of::<{rust}>() == {size});
{asserted}"
    );
}

/// `log_file` is `LogFile`.
fn camel(name: &str) -> String {
    name.split('_')
        .map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_uppercase() + rest
        })
        .collect()
}

fn rust_type(field: &Field) -> String {
    match field.count {
        Some(count) => format!("[{}; {count}]", field.scalar.rust),
        None => field.scalar.rust.to_owned(),
    }
}

fn zero(field: &Field) -> String {
    field.count.map_or_else(|| "0".to_owned(), |count| format!("[0; {count}]"))
}

fn reading(field: &Field) -> String {
    let (rust, size, from, to) =
        (field.scalar.rust, field.scalar.size, field.offset, field.offset + field.size());
    match field.count {
        None => format!("{rust}::from_le_bytes(*bytes[{from}..{to}].first_chunk()?)"),
        Some(_) if size == 1 && rust == "u8" => format!("*bytes[{from}..{to}].first_chunk()?"),
        Some(count) => format!(
            "{{
                let mut values = [0; {count}];
                for (value, bytes) in values.iter_mut().zip(bytes[{from}..{to}].chunks_exact({size})) {{
                    *value = {rust}::from_le_bytes(*bytes.first_chunk()?);
                }}
                values
            }}"
        ),
    }
}

fn writing(field: &Field) -> String {
    let (name, size, from, to) = (&field.name, field.scalar.size, field.offset, field.offset + field.size());
    match field.count {
        None => format!("bytes[{from}..{to}].copy_from_slice(&self.{name}.to_le_bytes());"),
        Some(_) => format!(
            "for (bytes, value) in bytes[{from}..{to}].chunks_exact_mut({size}).zip(self.{name}) {{
            bytes.copy_from_slice(&value.to_le_bytes());
        }}"
        ),
    }
}
