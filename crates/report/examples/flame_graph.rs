//! Draws folded stacks, or the difference of two, as a page:
//! `cargo run -p widthwise-report --example flame_graph -- out.html a.folded [b.folded]`.

use std::error::Error;
use std::fs;

use widthwise_anatomy::heap::Column;
use widthwise_anatomy::import::folded;
use widthwise_report::html::flame::{page, Flame, Side};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [out, first, rest @ ..] = &arguments[..] else {
        return Err("usage: flame_graph OUT.html FOLDED [FOLDED]".into());
    };
    let column = Column::PeakBytes;
    let read = |path: &String| -> Result<_, Box<dyn Error>> { Ok(folded::read(&fs::read(path)?, column)?) };
    let profile = read(first)?;
    let other = rest.first().map(read).transpose()?;
    let flame = Flame {
        title: "Bytes at the peak",
        column,
        first: Side { name: first, profile: &profile, program: "" },
        second: other.as_ref().zip(rest.first()).map(|(profile, name)| Side { name, profile, program: "" }),
        through: &[],
    };
    fs::write(out, page(&flame))?;
    Ok(())
}
