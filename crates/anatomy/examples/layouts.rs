//! Prints every structure, class and union of a program with its members' places: `layouts FILE [THREADS]`.

use widthwise_anatomy::layout;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), threads) = (arguments.next(), arguments.next()) else {
        eprintln!("layouts FILE [THREADS]");
        std::process::exit(2);
    };
    let threads = threads.and_then(|threads| threads.parse().ok()).unwrap_or(1);
    match layout::read(file.as_ref(), threads) {
        Ok(layouts) => print(&layouts),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}

fn print(layouts: &layout::Layouts) {
    use std::io::Write;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for id in &layouts.aggregates {
        let Some(aggregate) = layouts.aggregate(*id) else { continue };
        let _ = writeln!(out, "{} {} {}", aggregate.kind.keyword(), aggregate.name, aggregate.size);
        for member in &aggregate.members {
            let _ = writeln!(
                out,
                "\t{} {:?} {:?} {} {}",
                member.name.as_deref().unwrap_or("-"),
                member.offset,
                member.bits.map(|bits| (bits.offset, bits.size)),
                layouts.size(member.ty),
                layouts.name(member.ty)
            );
        }
    }
    for unread in &layouts.unread {
        eprintln!("{} ({}x)", unread.reason, unread.count);
    }
}
