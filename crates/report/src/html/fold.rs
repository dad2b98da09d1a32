//! What is folded and too large to stand in the page as it is: it is kept compressed, and unpacked when its fold is opened.

use std::io::Write;

use base64::Engine;
use flate2::write::DeflateEncoder;
use flate2::Compression;
use maud::{html, Markup};

/// Bytes of a fold that are kept as they are. Sixty variants of 167 rounds make 600 kB for each metric.
const LARGEST: usize = 100_000;
/// What every packed fold begins with: a page that has one runs [`super::SCRIPT`].
pub const MARK: &str = "<template class=\"packed\">";

/// The content or, where that is large, the same compressed (raw DEFLATE in base64), with what stands there without the script.
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
