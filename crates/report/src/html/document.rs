//! What every page is: one file, that loads nothing, and runs nothing but what it says.

use maud::{html, Markup, PreEscaped, DOCTYPE};

/// The style of all pages.
const STYLE: &str = include_str!("style.css");

/// Nothing is loaded and nothing runs: styles stand in the page, and there is no script. [`flame::policy`](super::flame::policy)
/// is the same for pages with a flame graph.
pub const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                      form-action 'none'";

/// The file of a page: `styles` come after the common one; title and body have been made safe.
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
