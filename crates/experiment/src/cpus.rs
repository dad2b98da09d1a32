//! Which CPUs a run may use: `auto`, `any`, or a list such as `0,2-3`.

use std::collections::BTreeSet;
use std::fmt;

use crate::model::Cpus;
use crate::request_error::RequestErrorKind;

/// One more than the highest CPU number that Linux can have on x86: `NR_CPUS` with `MAXSMP`, arch/x86/Kconfig.
const MOST_CPUS: u32 = 8192;

impl Cpus {
    /// Reads `auto`, `any` or a list.
    pub fn parse(text: &str) -> Result<Cpus, RequestErrorKind> {
        match text {
            "auto" => Ok(Cpus::Auto),
            "any" => Ok(Cpus::Any),
            list => numbers(list)
                .map(Cpus::List)
                .map_err(|reason| RequestErrorKind::BadCpus { text: list.to_owned(), reason }),
        }
    }
}

fn numbers(list: &str) -> Result<Vec<u32>, String> {
    let mut seen = BTreeSet::new();
    let mut cpus = Vec::new();
    for part in list.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("{part} is a descending range"));
        }
        for cpu in first..=last {
            if !seen.insert(cpu) {
                return Err(format!("CPU {cpu} is named twice"));
            }
            cpus.push(cpu);
        }
    }
    Ok(cpus)
}

fn number(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(cpu) if cpu < MOST_CPUS && text.bytes().all(|b| b.is_ascii_digit()) => Ok(cpu),
        _ => Err(format!("{text:?} is no CPU number")),
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cpus::Auto => f.write_str("auto"),
            Cpus::Any => f.write_str("any"),
            Cpus::List(cpus) => {
                let numbers: Vec<String> = cpus.iter().map(u32::to_string).collect();
                f.write_str(&numbers.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> String {
        match Cpus::parse(text) {
            Err(RequestErrorKind::BadCpus { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lists_and_ranges_are_read() {
        assert_eq!(Cpus::parse("0,2-3"), Ok(Cpus::List(vec![0, 2, 3])));
        assert_eq!(Cpus::parse("auto"), Ok(Cpus::Auto));
        assert_eq!(Cpus::parse("any"), Ok(Cpus::Any));
        assert_eq!(Cpus::parse("5, 1"), Ok(Cpus::List(vec![5, 1])));
    }

    #[test]
    fn an_invalid_list_is_refused() {
        assert_eq!(reason("0,1-x"), "\"x\" is no CPU number");
        assert_eq!(reason(""), "\"\" is no CPU number");
        assert_eq!(reason("3-1"), "3-1 is a descending range");
        assert_eq!(reason("0-2,1"), "CPU 1 is named twice");
        assert_eq!(reason("0-4294967295"), "\"4294967295\" is no CPU number");
        assert_eq!(reason("+1"), "\"+1\" is no CPU number");
    }
}
