//! The allocation sites of a recorded heap as CSV.

use std::io::Write;

use widthwise_anatomy::heap::Values;

use super::{is_uncounted, known_chunks, Explanation, Side};

/// The header row. `docs/csv.md` describes each column.
pub const HEAD: [&str; 14] = [
    "program",
    "variant",
    "function",
    "file",
    "line",
    "module",
    "type",
    "peak_bytes",
    "peak_blocks",
    "peak_chunk_bytes",
    "bytes",
    "blocks",
    "left_bytes",
    "left_blocks",
];

impl Explanation<'_> {
    /// Writes a row for each site and variant. A number that the recording does not have is empty.
    ///
    /// # Errors
    /// The writer's.
    pub fn csv(&self, out: impl Write) -> Result<(), ::csv::Error> {
        let mut table = ::csv::Writer::from_writer(out);
        table.write_record(HEAD)?;
        for pair in self.pairs {
            let site = &pair.site;
            let own: [String; 5] = [
                site.function.clone(),
                site.file.clone().unwrap_or_default(),
                site.line.map_or(String::new(), |line| line.to_string()),
                site.module.clone(),
                site.made.clone().unwrap_or_default(),
            ];
            let sides = std::iter::once((self.a, &pair.a)).chain(self.b.map(|b| (b, &pair.b)));
            for (side, values) in sides {
                let named = [self.program.to_owned(), side.name.clone()];
                table.write_record(named.iter().chain(&own).chain(&numbers(side, values)))?;
            }
        }
        table.flush()?;
        Ok(())
    }
}

fn numbers(side: &Side, values: &Values) -> [String; 7] {
    let is_counted = !is_uncounted(side.peak_bytes, side.peak_blocks);
    let counted = |number: u64| if is_counted { number.to_string() } else { String::new() };
    [
        values.peak_bytes.to_string(),
        counted(values.peak_count),
        known_chunks(values.peak_bytes, values.peak_chunk_bytes)
            .map_or(String::new(), |bytes| bytes.to_string()),
        counted(values.bytes),
        counted(values.count),
        counted(values.live_bytes),
        counted(values.live_count),
    ]
}
