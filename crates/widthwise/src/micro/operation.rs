//! The suite's table of operations, which C and Rust share.

/// The table: lines `OPERATION(name, family, "noun")`.
pub const TABLE: &str = include_str!("../../../../workloads/micro/operations.def");

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Its name.
    pub name: &'static str,
    /// What kind of operation it is.
    pub family: &'static str,
    /// The noun of a sentence.
    pub noun: &'static str,
}

impl Operation {
    /// Whether `micro:all` has it: known truths are for tests.
    pub fn is_row(&self) -> bool {
        self.family != "truth"
    }
}

/// Every operation, in the table's order.
pub fn all() -> Vec<Operation> {
    let row = |line: &'static str| {
        let row = line.strip_prefix("OPERATION(")?.strip_suffix("\")")?;
        let (name, rest) = row.split_once(", ")?;
        let (family, noun) = rest.split_once(", \"")?;
        Some(Operation { name, family, noun })
    };
    TABLE.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_read() {
        let all = all();
        assert_eq!(all.len(), TABLE.lines().filter(|line| line.starts_with("OPERATION(")).count());
        let getpid = all.iter().find(|operation| operation.name == "getpid").unwrap();
        assert_eq!((getpid.family, getpid.noun), ("system", "getpid"));
    }
}
