//! What the runtime itself costs: reads the account that it keeps (`runtime/x32/account_file.h`), and the output of
//! `x32run --costs`, the cost of each way that a call can take.

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The layout of the account's file, generated from the header by build.rs.
#[allow(dead_code)]
mod file {
    include!(concat!(env!("OUT_DIR"), "/account_file.rs"));
}

use file::{AccountHead, AccountRecord, Counts};

/// The size of an account's file: zeros before the program is started.
pub const ACCOUNT_SIZE: u64 = (FIRST + RECORDS * AccountRecord::SIZE) as u64;

/// Where the record of the first process lies in it.
pub const FIRST_RECORD: u64 = FIRST as u64;

const HEAD: usize = file::ACCOUNT_HEAD as usize;
const CELLS: usize = file::ACCOUNT_CELLS as usize;
const RECORDS: usize = file::ACCOUNT_RECORDS as usize;
/// Whole pages of cells come before the records.
const FIRST: usize = HEAD + (CELLS * Counts::SIZE).next_multiple_of(HEAD);
/// Calls of `--costs`' loops.
const LOOP: f64 = 128.0;

/// With fewer, one that was interrupted would be too much of it.
const FEWEST_PROBES: u64 = 8;

/// How an image of the runtime ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageEnd {
    /// Without a word: it was killed, or is still there.
    Unknown,
    /// The process ended.
    Ended,
    /// Another program took its place (execve).
    Replaced,
}

/// One image of the runtime in one process. Amounts are bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// Its process.
    pub process: u32,
    /// How it ended.
    pub end: ImageEnd,
    /// The runtime's own resident memory at the process's peak; absent where it could not be counted.
    pub resident: Option<u64>,
    /// The process's peak, when it was last looked at (`ru_maxrss`).
    pub peak: u64,
    /// The same, when this image began.
    pub peak_before: u64,
    /// The runtime's own address space.
    pub virtual_size: u64,
    /// Page faults of the runtime's own.
    pub minor_faults: u64,
    /// Those that waited for a disk.
    pub major_faults: u64,
}

/// Calls of one number that went the slow way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlowCalls {
    /// Through a rewritten site into the runtime, which translated them.
    pub entered: u64,
    /// Through a trap.
    pub trapped: u64,
}

/// All that was counted of one run, of every process together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Account {
    /// Every image of the runtime, in the order in which they began.
    pub images: Vec<Image>,
    /// Images of which nothing was counted: the account's file was out of their reach.
    pub uncounted: u32,
    /// By name.
    pub slow_calls: BTreeMap<&'static str, SlowCalls>,
    /// Calls that a stub made itself.
    pub plain_calls: u64,
    /// Slow calls of these that went through the i386 entry.
    i386_calls: u64,
    /// What the i386 entry cost in this run: ticks, of so many calls that do nothing.
    probes: (u64, u64),
    /// Ticks in some of the calls that entered without a trap, and how many these were.
    samples: (u64, u64),
    signals: u64,
    /// Ticks in the delivery of some of the signals, and how many these were.
    timed_signals: (u64, u64),
    /// CPU time that the runtime read itself.
    nanoseconds: u64,
}

impl Account {
    /// How many calls of these names went the slow way.
    pub fn calls(&self, names: &[&str]) -> u64 {
        let own = names.iter().filter_map(|name| self.slow_calls.get(name));
        own.map(|calls| calls.entered + calls.trapped).sum()
    }

    /// From the bytes of the file, after the run; absent where no runtime opened it.
    pub fn read(bytes: &[u8]) -> Option<Account> {
        let head = AccountHead::read(bytes)?;
        if head.magic != file::ACCOUNT_MAGIC {
            return None;
        }
        let mut account = Account::default();
        let records = head.records as usize;
        let not_opened = (u64::from(head.announced) + 1).saturating_sub(head.opened.into());
        account.uncounted = (not_opened + records.saturating_sub(RECORDS) as u64) as u32;
        for index in 0..records.min(RECORDS) {
            account.add_image(&AccountRecord::read(bytes.get(FIRST + index * AccountRecord::SIZE..)?)?);
        }
        for index in 0..CELLS {
            account.add_cell(&Counts::read(bytes.get(HEAD + index * Counts::SIZE..)?)?);
        }
        Some(account)
    }

    fn add_image(&mut self, record: &AccountRecord) {
        self.images.push(Image {
            process: record.process,
            end: match record.state {
                file::ACCOUNT_ENDED => ImageEnd::Ended,
                file::ACCOUNT_REPLACED => ImageEnd::Replaced,
                _ => ImageEnd::Unknown,
            },
            resident: (record.resident > 0 && record.blind == 0).then_some(record.resident),
            peak: record.peak,
            peak_before: record.peak_before,
            virtual_size: record.virtual_,
            minor_faults: record.minor_faults,
            major_faults: record.major_faults,
        });
        self.nanoseconds += record.load_ns + record.rewriting_ns + record.account_ns;
    }

    fn add_cell(&mut self, cell: &Counts) {
        self.plain_calls += cell.plain;
        self.signals += cell.signals;
        self.i386_calls += cell.i386_calls;
        for (sum, ticks, count) in [
            (&mut self.samples, cell.sampled_ticks, cell.samples),
            (&mut self.timed_signals, cell.signal_ticks, cell.timed_signals),
            (&mut self.probes, cell.probe_ticks, cell.probes),
        ] {
            *sum = (sum.0 + ticks, sum.1 + count);
        }
        for (number, (entered, trapped)) in cell.entered.into_iter().zip(cell.trapped).enumerate() {
            let calls = SlowCalls { entered: entered.into(), trapped: trapped.into() };
            if calls != SlowCalls::default() {
                let sum = self.slow_calls.entry(call_name(number)).or_default();
                sum.entered += calls.entered;
                sum.trapped += calls.trapped;
            }
        }
    }

    /// How many calls went the slow way.
    pub fn slow(&self) -> u64 {
        self.slow_calls.values().map(|calls| calls.entered + calls.trapped).sum()
    }

    /// The CPU time of the runtime's own, in nanoseconds: what it measured itself, and what each call's way costs here.
    pub fn cpu_ns(&self, costs: &Costs) -> f64 {
        let sum = |of: fn(&SlowCalls) -> u64| self.slow_calls.values().map(of).sum::<u64>() as f64;
        let (entered, trapped) = (sum(|calls| calls.entered), sum(|calls| calls.trapped));
        // Measured in the run itself, if only for an instant; else what it costs in a loop.
        let i386_ns = match self.probes {
            (ticks, count) if count >= FEWEST_PROBES => {
                (ticks as f64 / count as f64 * costs.tick_ns - costs.native_ns).max(0.0)
            }
            _ => costs.i386_ns,
        };
        // What was interrupted is not timed. It is taken to last as long as what was.
        let all =
            |(ticks, count): (u64, u64), of: f64| ticks as f64 / count.max(1) as f64 * of * costs.tick_ns;
        self.nanoseconds as f64
            + self.probes.0 as f64 * costs.tick_ns
            + all(self.samples, entered)
            + all(self.timed_signals, self.signals as f64)
            + entered * costs.entering_ns
            + (trapped + self.signals as f64) * costs.trapped_ns
            + self.i386_calls as f64 * i386_ns
            + self.plain_calls as f64 * costs.plain_ns
    }
}

/// What each way of a call costs on this machine, beside the kernel's own work, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// A tick of the time-stamp counter.
    pub tick_ns: f64,
    /// A call that does nothing, as the kernel itself makes it.
    pub native_ns: f64,
    /// A call made by its stub.
    pub plain_ns: f64,
    /// The way into the runtime and back, without what the runtime does there, which it measures itself.
    pub entering_ns: f64,
    /// The i386 entry, beside the ordinary one.
    pub i386_ns: f64,
    /// A trap, with what is done about it.
    pub trapped_ns: f64,
}

impl Costs {
    /// From the text of `x32run --costs`: a line for each loop of 128 calls, with the ticks of every round.
    pub fn read(text: &str, tick_ns: f64) -> Option<Costs> {
        let loop_of = |name: &str| -> Option<f64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
            let mut ticks: Vec<f64> =
                line.split_whitespace().map(|ticks| ticks.parse().ok()).collect::<Option<_>>()?;
            ticks.sort_by(f64::total_cmp);
            Some(ticks.get(ticks.len() / 2)? / LOOP * tick_ns)
        };
        let beyond = |way: f64, native: f64| (way - native).max(0.0);
        let entering = loop_of("entering")? - loop_of("native-entering")?;
        Some(Costs {
            tick_ns,
            native_ns: loop_of("native-plain")?,
            plain_ns: beyond(loop_of("plain")?, loop_of("native-plain")?),
            entering_ns: beyond(entering, loop_of("timers")?),
            i386_ns: beyond(loop_of("i386")? - loop_of("native-i386")?, entering),
            trapped_ns: beyond(loop_of("trapped")?, loop_of("native-plain")?),
        })
    }
}

/// The name of a system call by its number in the runtime's table.
fn call_name(number: usize) -> &'static str {
    static NAMES: OnceLock<BTreeMap<usize, &'static str>> = OnceLock::new();
    let read = || {
        let rows = include_str!("../../../runtime/x32/table.c").lines().filter_map(|line| {
            let (number, rest) = line.trim().strip_prefix('[')?.split_once("] = {\"")?;
            Some((number.parse().ok()?, rest.split_once('"')?.0))
        });
        rows.collect()
    };
    NAMES.get_or_init(read).get(&number).copied().unwrap_or("others")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_the_names_of_the_runtimes_table() {
        assert_eq!((call_name(0), call_name(217), call_name(514)), ("read", "getdents64", "ioctl"));
        assert_eq!(call_name(548), "others");
    }

    #[test]
    fn what_is_no_account_is_none() {
        assert_eq!(Account::read(&[]), None);
        assert_eq!(Account::read(&vec![0; ACCOUNT_SIZE as usize]), None);
    }

    #[test]
    fn calls_that_were_not_timed_cost_as_much_as_those_that_were() {
        let costs = Costs {
            tick_ns: 0.5,
            native_ns: 0.0,
            plain_ns: 0.0,
            entering_ns: 2.0,
            i386_ns: 0.0,
            trapped_ns: 0.0,
        };
        let calls = SlowCalls { entered: 16, trapped: 1 };
        let account = Account {
            slow_calls: BTreeMap::from([("ioctl", calls)]),
            samples: (200, 2),
            signals: 3,
            timed_signals: (40, 2),
            nanoseconds: 7,
            ..Account::default()
        };
        assert_eq!(account.cpu_ns(&costs), 7.0 + 16.0 * (100.0 * 0.5 + 2.0) + 3.0 * 20.0 * 0.5);
        let none = Account { samples: (0, 0), timed_signals: (0, 0), ..account };
        assert_eq!(none.cpu_ns(&costs), 7.0 + 16.0 * 2.0);
    }

    #[test]
    fn a_ways_cost_is_what_it_takes_beside_the_kernels_own() {
        let text = "native-plain 12800 1 12800\nnative-entering 6400\nnative-i386 6400\nplain 25600\n\
                    entering 32000\nentering-timed 40000\ni386 160000\ntrapped 400000\ntimers 6400\n";
        let costs = Costs::read(text, 0.5).unwrap();
        assert_eq!((costs.plain_ns, costs.trapped_ns), (50.0, 387_200.0 / 128.0 * 0.5));
        assert_eq!(
            (costs.entering_ns, costs.i386_ns),
            ((25_600.0 - 6_400.0) / 256.0, (153_600.0 - 25_600.0) / 256.0)
        );
        assert_eq!(Costs::read("plain 1\n", 0.5), None);
    }
}
