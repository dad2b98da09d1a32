//! The frame of every page: one file that loads nothing, and runs only its own scripts.

use base64::Engine;
use maud::{html, Markup, PreEscaped, DOCTYPE};
use sha2::Digest;

/// The style of all pages.
const STYLE: &str = include_str!("style.css");

/// Nothing is loaded or run: styles are inline, and there is no script.
pub const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                      form-action 'none'";

/// The Content-Security-Policy of a page with these scripts: [`POLICY`], plus the scripts' hashes (CSP level
/// 3, 6.7.2.3).
pub(crate) fn policy(scripts: &[&str]) -> String {
    if scripts.is_empty() {
        return POLICY.to_owned();
    }
    let sources: Vec<String> = scripts.iter().map(|script| source(script)).collect();
    format!("{POLICY}; script-src {}", sources.join(" "))
}

/// A script as a source of a policy's `script-src`.
pub(crate) fn source(script: &str) -> String {
    let hash = sha2::Sha256::digest(script.as_bytes());
    format!("'sha256-{}'", base64::engine::general_purpose::STANDARD.encode(hash))
}

/// A complete page: `styles` follow the common one; title and body are already sanitized.
pub(crate) fn document(title: &str, policy: &str, styles: &[&str], body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "Widthwise " (env!("CARGO_PKG_VERSION")) };
                title { (title) " · Widthwise" }
                style { (PreEscaped(STYLE)) @for style in styles { (PreEscaped(*style)) } }
            }
            (body)
        }
    }
}
