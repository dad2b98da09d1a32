//! Folds that are too large for the page as they are: stored compressed, and unpacked when opened.

use std::io::Write;

use base64::Engine;
use flate2::write::DeflateEncoder;
use flate2::Compression;
use maud::{html, Markup};

/// Larger folds are compressed. Sixty variants of 167 rounds make 600 kB for each metric.
const LARGEST: usize = 100_000;
/// The beginning of every packed fold: a page with one runs [`SCRIPT`](super::page::SCRIPT).
pub const MARK: &str = "<template class=\"packed\">";

/// The content or, if it is large, its compressed form (raw DEFLATE in base64), with a replacement for
/// readers without the script.
pub fn packed(content: Markup, instead: impl FnOnce() -> Markup) -> Markup {
    if content.0.len() <= LARGEST {
        return content;
    }
    let Some(bytes) = deflated(content.0.as_bytes()) else { return content };
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    html! { div { (instead()) template class="packed" { (text) } } }
}

fn deflated(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).ok()
}
