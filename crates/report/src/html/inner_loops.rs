//! The inner loops of operations, side by side.

use maud::{html, Markup};

use super::fold;
use crate::format::counted;
use crate::inner_loops::{folded, InnerLoop};
use crate::sanitize;

/// A fold for each operation, with a column for each variant.
pub fn section(loops: &[InnerLoop]) -> Markup {
    if loops.is_empty() {
        return html! {};
    }
    html! {
        section id="loops" {
            h2 { "Inner loops" }
            p class="lead" {
                "The instructions between the jump back and its target, as the compiler left them; × is a number of equal "
                "instructions in a row. A function that is called is not shown."
            }
            (fold::packed(html! { @for one in loops { (operation(one)) } }, || html! {
                p { code { "widthwise explain VARIANT VARIANT --function micro_OPERATION" } " prints a loop." }
            }))
        }
    }
}

fn operation(one: &InnerLoop) -> Markup {
    html! {
        details {
            summary { code { (sanitize::line(&one.operation)) } ": " (lengths(one)) }
            div class="scroll" tabindex="0" role="region" aria-label=(sanitize::line(&one.operation)) {
                table class="loops" {
                    thead { tr { @for (variant, _) in &one.variants { th scope="col" { (sanitize::line(variant)) } } } }
                    tbody { tr {
                        @for (_, instructions) in &one.variants { td { (listing(instructions)) } }
                    } }
                }
            }
        }
    }
}

/// `35, 35 and 71 instructions`, in the order of the columns.
fn lengths(one: &InnerLoop) -> String {
    let lengths: Vec<String> = one.variants.iter().map(|(_, own)| own.len().to_string()).collect();
    match lengths.as_slice() {
        [] => String::new(),
        [one] => counted(one.parse().unwrap_or(0), "instruction"),
        [first @ .., last] => format!("{} and {last} instructions", first.join(", ")),
    }
}

fn listing(instructions: &[String]) -> Markup {
    if instructions.is_empty() {
        return html! { "no loop" };
    }
    html! {
        @for (count, text) in folded(instructions) {
            code { (sanitize::line(text)) } @if count > 1 { " × " (count) } br;
        }
    }
}
