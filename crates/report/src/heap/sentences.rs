//! The result as sentences. Only a difference larger than those between recordings of one side is called a
//! difference, and only then a cause is named.

use widthwise_anatomy::heap::wrappers::Wrapper;
use widthwise_anatomy::heap::Values;
use widthwise_experiment::model::Thp;
use widthwise_verdict::Word;

use super::differences::{Differences, Judged, SystemDifferences};
use super::quantities::{bytes, number, percent};
use super::side::{RssSummary, Side};
use super::{change, is_uncounted, lifetimes, Explanation};
use crate::format::counted;

/// RSS and heap disagree if they differ by more than this.
const PARTED: f64 = 0.05;

/// The name of the peak heap of sides with so many processes. Peaks of several processes are from different
/// moments.
fn peak_heap(processes: usize) -> &'static str {
    match processes {
        ..=1 => "peak heap (the most bytes requested and not yet freed)",
        _ => "sum of peak heaps (the most bytes that each process requested and had not yet freed)",
    }
}

/// `1.65 MB (41 %) smaller`; none where no difference is clear.
fn smaller(judged: &Judged) -> Option<String> {
    judged.is_clear().then(|| {
        let word = if judged.found.word == Word::Lower { "smaller" } else { "larger" };
        let by = judged.a.abs_diff(judged.b);
        let share = percent(by as f64, judged.a as f64);
        let share = if share.is_empty() { share } else { format!(" ({share})") };
        format!("{}{share} {word}", bytes(by))
    })
}

/// `51 % less`, and whether that is beyond the variation. A difference that is not clear is no equality.
fn less(judged: &Judged) -> String {
    let word = if judged.b < judged.a { "less" } else { "more" };
    match (judged.found.word, share_of_change(judged)) {
        (Word::Lower, share) => format!("{share} less"),
        (Word::Higher, share) => format!("{share} more"),
        (Word::NoDifference, _) => "as much, within the variation of the recordings".to_owned(),
        _ if judged.a == judged.b => "as much".to_owned(),
        (_, share) => format!("{share} {word}, within the variation of the recordings"),
    }
}

fn share_of_change(judged: &Judged) -> String {
    percent(judged.a.abs_diff(judged.b) as f64, judged.a as f64)
}

/// Max RSS is much more than the heap if it is over twice as large, and by more bytes than code and stacks
/// usually have.
const MUCH_MORE: u64 = 2;
const MORE_BYTES: u64 = 4 << 20;

/// A side's memory outside its heap, where that is much.
fn beyond(side: &Side, max_rss: Option<u64>) -> Option<String> {
    let heap = side.largest_peak_bytes;
    let is_much = |value: u64| value > heap.saturating_mul(MUCH_MORE) && value - heap > MORE_BYTES;
    let sum = if side.processes > 1 { ", its processes' largest amounts added up" } else { "" };
    let mapped = match side.own_mapped_peak_bytes {
        0 => "no memory with mmap".to_owned(),
        own => format!("up to {} with mmap{sum}", side.at_least(own)),
    };
    match max_rss.filter(|rss| is_much(*rss)) {
        Some(rss) => Some(format!(
            "{} has {} of max RSS and a peak heap of {}{}, and maps {mapped}",
            side.name,
            bytes(rss),
            side.at_least(heap),
            if side.processes > 1 {
                " (the largest of one process, without blocks from before its fork)"
            } else {
                ""
            }
        )),
        None => (side.own_mapped_peak_bytes > MORE_BYTES && side.own_mapped_peak_bytes > heap / 10)
            .then(|| format!("{} maps {mapped}", side.name)),
    }
}

/// A function that passes requests on, or may do so.
fn handed_on(wrapper: &Wrapper) -> String {
    let function = &wrapper.function;
    let share = percent(wrapper.share, 1.0);
    if let Some(chunks) = &wrapper.chunks {
        let asks = match chunks.are_several {
            true => format!("for whole pages of {} bytes", number(chunks.bytes)),
            false => format!("for {} bytes", number(chunks.bytes)),
        };
        return format!(
            "{function} requests {share} of the bytes at the peak. One of its lines always asks {asks}, for {}, so that it is taken \
             for a pool: its callers are not the sites. If it is a wrapper, `--skip-frames '{function}'` shows them.",
            counted(chunks.callers, "caller")
        );
    }
    match wrapper.is_thin {
        true => format!(
            "{function} requests {share} of the bytes at the peak and is taken for a wrapper by its name: its callers are \
             the sites (`--keep-wrappers` shows it as one)."
        ),
        false => format!(
            "{function} requests {share} of the bytes at the peak, for several callers: if it only passes requests on, \
             `--skip-frames '{function}'` shows them."
        ),
    }
}

/// The missing parts of a side, and the consequence.
fn incomplete(side: &Side) -> Option<String> {
    /// The number of reasons to print; the others are counted.
    const MOST_REASONS: usize = 3;
    let reasons = side.incomplete.iter().take(MOST_REASONS).cloned().collect::<Vec<String>>().join("; ");
    let more = match side.incomplete.len().saturating_sub(MOST_REASONS) {
        0 => String::new(),
        more => format!("; and {}", counted(more, "more reason")),
    };
    (!side.incomplete.is_empty()).then(|| {
        format!("The recording of {} is incomplete: {reasons}{more}. Its sizes are lower bounds.", side.name)
    })
}

impl Explanation<'_> {
    /// The result as sentences.
    pub fn sentences(&self) -> Vec<String> {
        let differences = self.differences();
        let mut sentences = match (self.b, &differences) {
            (Some(b), Some(differences)) => self.compared(b, differences),
            _ => self.alone(),
        };
        sentences.extend(self.wrappers.iter().map(handed_on));
        sentences.extend(self.max_rss.as_ref().map(|max_rss| max_rss.sentence()));
        sentences.extend(self.beyond_heap());
        sentences.extend(self.lifetimes());
        match (self.b, &differences) {
            (Some(b), Some(differences)) => sentences.extend(self.system_of_two(b, differences)),
            _ => sentences.extend(self.system_of_one()),
        }
        for side in std::iter::once(self.a).chain(self.b).filter(|side| side.processes > 1) {
            sentences.push(format!(
                "{} has {} processes, and each is shown at its own peak: no moment need have had their sum. The largest peak heap \
                 of one process is {}; blocks from before a fork count for the parent alone.",
                side.name,
                number(side.processes as u64),
                side.at_least(side.largest_peak_bytes)
            ));
        }
        for side in std::iter::once(self.a).chain(self.b) {
            sentences.extend(incomplete(side));
        }
        sentences
    }

    fn alone(&self) -> Vec<String> {
        let a = self.a;
        let mut sentences = Vec::new();
        // Other profilers do not record everything.
        let blocks = match a.peak_blocks {
            0 => String::new(),
            blocks => format!(" in {}", counted(blocks as usize, "block")),
        };
        let chunks = match (a.peak_chunk_bytes, a.peak_blocks) {
            (0, _) => String::new(),
            (chunks, 1) => format!("; the allocator uses {} for it", a.at_least(chunks)),
            (chunks, _) => format!("; the allocator uses {} for them", a.at_least(chunks)),
        };
        let peak = a.at_least(a.peak_bytes);
        sentences.push(match a.processes {
            ..=1 => format!("{}'s peak heap is {peak}{blocks}{chunks}.", a.name),
            _ => format!("The peak heaps of {}'s processes add up to {peak}{blocks}{chunks}.", a.name),
        });
        let peaks = a.recordings.iter().map(|one| one.peak_bytes);
        if let (Some(least), Some(most), true) = (peaks.clone().min(), peaks.max(), a.incomplete.is_empty()) {
            if least < most {
                sentences.push(format!(
                    "This is the recording with the middle peak heap of {}, whose peak heaps are {} to {}.",
                    a.recordings.len(),
                    bytes(least),
                    bytes(most)
                ));
            }
        }
        if a.blocks > 0 && !a.incomplete.is_empty() {
            sentences.push(format!(
                "It requests {} in at least {}.",
                a.at_least(a.bytes),
                counted(a.blocks as usize, "block")
            ));
        } else if a.blocks > 0 {
            sentences.push(format!(
                "In total it requests {} in {}; {} are never freed.",
                bytes(a.bytes),
                counted(a.blocks as usize, "block"),
                bytes(a.left_bytes)
            ));
        }
        sentences
    }

    fn compared(&self, b: &Side, differences: &Differences) -> Vec<String> {
        let (a, peak) = (self.a, &differences.peak_heap);
        let peak_heap = peak_heap(a.processes.max(b.processes));
        let (from, to) = (a.at_least(a.peak_bytes), b.at_least(b.peak_bytes));
        let is_counted = |side: &Side| !is_uncounted(side.peak_bytes, side.peak_blocks);
        let blocks = change(Some(number(a.peak_blocks)), Some(Some(number(b.peak_blocks))));
        let blocks = match (is_counted(a) && is_counted(b), a.peak_blocks == b.peak_blocks) {
            (true, true) => format!(", in {}", counted(a.peak_blocks as usize, "block")),
            (true, false) => format!(", in {blocks} blocks"),
            (false, _) => String::new(),
        };
        let in_blocks = |side: &Side| match is_counted(side) {
            true => format!(" in {}", counted(side.peak_blocks as usize, "block")),
            false => String::new(),
        };
        let reason = peak.found.reason.as_deref().map_or(String::new(), |reason| format!("; {reason}"));
        let mut sentences = vec![match (peak.found.word, smaller(peak)) {
            (_, Some(smaller)) => format!(
                "{}'s {peak_heap} is {smaller} than {}'s: {from} → {to}{blocks}.",
                b.name, a.name
            ),
            (Word::Withheld | Word::NoData, _) => format!(
                "{peak_heap}: {} has {from}{}, {} {to}{}. Neither is called smaller{reason}.",
                a.name,
                in_blocks(a),
                b.name,
                in_blocks(b),
            )
            .replacen(char::is_lowercase, &peak_heap[..1].to_uppercase(), 1),
            _ if a.peak_bytes == b.peak_bytes && peak.found.floor == Some(0.0) => {
                format!("{} and {} have the same {peak_heap}: {from}{blocks}.", a.name, b.name)
            }
            (Word::Inconclusive, _) => format!(
                "The recordings of {} and {} establish no difference in their {peak_heap}: {from} and {to}{reason}.",
                a.name, b.name
            ),
            _ => format!(
                "{} and {} do not differ in their {peak_heap}, within the variation of the recordings: {from} and {to}{reason}.",
                a.name, b.name
            ),
        }];
        if let Some(chunks) = &differences.peak_chunks {
            let (from, to) = (a.at_least(chunks.a), b.at_least(chunks.b));
            let what = "What the allocator uses for it, its own headers and rounding included";
            sentences.push(match smaller(chunks) {
                Some(smaller) => format!("{what}: {from} → {to}, {smaller}."),
                None if from == to => format!("{what}: {from}."),
                None => format!("{what}: {from} and {to}."),
            });
        }
        sentences.extend(self.recordings(b));
        sentences
    }

    /// The variation between recordings of one side.
    fn recordings(&self, b: &Side) -> Option<String> {
        if !self.is_repeated() || self.is_incomplete() {
            return None;
        }
        let spread = |side: &Side| {
            let peaks = side.recordings.iter().map(|one| one.peak_bytes);
            let (least, most) = (peaks.clone().min()?, peaks.max()?);
            Some((most - least) as f64 / (side.peak_bytes.max(1)) as f64)
        };
        let spread = spread(self.a)?.max(spread(b)?);
        let (of_a, of_b) = (self.a.recordings.len(), b.recordings.len());
        let times = if of_a == of_b {
            format!("Each was recorded {of_a} times")
        } else {
            format!("{} was recorded {of_a} times and {} {of_b} times", self.a.name, b.name)
        };
        Some(match spread {
            0.0 => format!("{times}, with the same peak heap to the byte each time."),
            _ => format!("{times}; peak heaps of one differ by up to {}.", percent(spread, 1.0)),
        })
    }

    /// Whether a recording of either side misses events: then the lifetimes of its blocks are unknown.
    fn is_incomplete(&self) -> bool {
        std::iter::once(self.a).chain(self.b).any(|side| !side.incomplete.is_empty())
    }

    /// Memory outside the heap, where that is much: by max RSS, or mapped by the program itself.
    fn beyond_heap(&self) -> Option<String> {
        let max_rss = |value: Option<f64>| value.map(|value| value as u64);
        let sides = [
            (Some(self.a), max_rss(self.max_rss.as_ref().map(|max_rss| max_rss.a))),
            (self.b, max_rss(self.max_rss.as_ref().and_then(|max_rss| max_rss.b))),
        ];
        let figures: Vec<String> = sides.into_iter().filter_map(|(side, rss)| beyond(side?, rss)).collect();
        let others = match figures.iter().any(|figure| figure.contains("max RSS")) {
            true => ", and max RSS also counts code, stacks and files",
            false => "",
        };
        let text = format!(
            "Memory that a program maps itself with mmap is no part of its heap{others}: {}.",
            figures.join("; ")
        );
        (!figures.is_empty()).then_some(text)
    }

    /// The lifetimes of blocks, over all sites.
    fn lifetimes(&self) -> Option<String> {
        if self.is_incomplete() {
            return None;
        }
        let (mut a, mut b) = (Values::default(), Values::default());
        for pair in self.pairs {
            a.add(&pair.a);
            b.add(&pair.b);
        }
        lifetimes::sentence((&self.a.name, &a), self.b.map(|side| (side.name.as_str(), &b)))
    }

    /// One side's resident memory of the heap, and the part that is not requested.
    fn system_of_one(&self) -> Option<String> {
        if self.is_incomplete() {
            return None;
        }
        if let Some(reason) = self.a.shortcoming() {
            return Some(format!("What the system gives it for the heap is not known: {reason}."));
        }
        let summary = self.a.system.as_ref()?;
        Some(format!(
            "{}: the system has given {} for the heap on average, and the program has {} allocated{}; {}.",
            self.a.name,
            bytes(summary.resident_bytes),
            bytes(summary.asked_bytes),
            with_mappings(&[self.a], summary.asked_bytes),
            kept_of_one(summary, self.a.huge_bytes)
        ))
    }

    /// Where RSS and heap disagree, and why.
    fn system_of_two(&self, b: &Side, differences: &Differences) -> Vec<String> {
        let a = self.a;
        if self.is_incomplete() {
            return Vec::new();
        }
        if let (true, Some(reason)) = (self.is_repeated(), a.shortcoming().or(b.shortcoming())) {
            return vec![format!("What the system gives them for the heap is not compared: {reason}.")];
        }
        let Some(system) = &differences.system else { return Vec::new() };
        let SystemDifferences { resident, asked, live, given, .. } = system;
        if resident.a == 0 || asked.a == 0 {
            return Vec::new();
        }
        let averages = format!(
            "{} and {} for the heap of {} and {}, which ask for {} and {}{}",
            bytes(resident.a),
            bytes(resident.b),
            a.name,
            b.name,
            bytes(asked.a),
            bytes(asked.b),
            with_mappings(&[a, b], asked.a.min(asked.b))
        );
        if given.word == Word::Withheld {
            let reason = given.reason.as_deref().unwrap_or("it is not known why");
            return vec![match self.is_repeated() {
                true => format!("What the system gives them for the heap is not compared: {reason}."),
                false => format!(
                    "On average over the run the system gives {averages}: not compared, since {reason}."
                ),
            }];
        }
        let ends = given.low.zip(given.high);
        let parted = ends.is_some_and(|(low, high)| low > 1.0 + PARTED || high < 1.0 - PARTED);
        let agree = ends.is_some_and(|(low, high)| low >= 1.0 - PARTED && high <= 1.0 + PARTED);
        // Rounding and headers are the allocator's overhead for requested memory; memory that it keeps is
        // another matter.
        let rounding = match (change_of(live) - change_of(asked)).abs() < PARTED {
            true => String::new(),
            false => format!(", {} with the allocator's rounding and headers", less(live)),
        };
        let gives =
            format!("{} for the heap ({} → {})", less(resident), bytes(resident.a), bytes(resident.b));
        let requests = format!(
            "{} ({} → {}{}){rounding}",
            less(asked),
            bytes(asked.a),
            bytes(asked.b),
            with_mappings(&[a, b], asked.a.min(asked.b))
        );
        if parted {
            let cause = Cause::of(system, [a, b]);
            let mut sentences = vec![format!(
                "The system sees something else: on average over the run it gives {gives}, but the program requests {requests}. {}",
                cause.sentence()
            )];
            sentences.extend(cause.of_each(a, b, system));
            if cause == Cause::Kept {
                sentences.extend(large_blocks(a, b));
            }
            return sentences;
        }
        if agree && resident.is_clear() {
            return vec![format!(
                "The system sees the same: on average over the run it gives {gives}, and the program asks for {}{rounding}.",
                less(asked)
            )];
        }
        if agree {
            return vec![format!(
                "The system sees the same: on average over the run it gives {averages}, which differ by no more than \
                 recordings of one variant do."
            )];
        }
        if resident.is_clear() {
            return vec![format!(
                "On average over the run the system gives {gives}, and the program requests {requests}: these recordings do not \
                 establish whether both differ by the same factor."
            )];
        }
        vec![format!(
            "On average over the run the system gives {averages}: these recordings do not establish a difference."
        )]
    }
}

/// That the requested bytes include mappings of the program's own, where these are much of them.
fn with_mappings(sides: &[&Side], asked: u64) -> &'static str {
    match sides.iter().any(|side| side.own_mapped_peak_bytes > asked / 100) {
        true => ", its own mappings included",
        false => "",
    }
}

/// What the allocator keeps. Allocated memory that is not resident hides some of it, and a huge page is resident as a whole.
fn kept_of_one(summary: &RssSummary, huge_bytes: u64) -> String {
    let (kept, untouched) = (bytes(summary.kept_bytes), bytes(summary.untouched_bytes));
    if huge_bytes > 0 {
        return format!(
            "up to {} are in huge pages (2 MiB), which are resident as a whole, so that the readings do not show how much the \
             allocator keeps",
            bytes(huge_bytes)
        );
    }
    if !is_hidden(summary) {
        return format!("the allocator keeps {kept}");
    }
    match is_little(summary) {
        true => format!(
            "at least {untouched} of that is not resident, so that the readings do not show how much the allocator keeps"
        ),
        false => format!("the allocator keeps at least {kept}, and at least {untouched} of what is allocated is not resident"),
    }
}

/// Whether allocated memory that is not resident may hide some of the kept memory.
fn is_hidden(summary: &RssSummary) -> bool {
    summary.untouched_bytes.saturating_mul(100) >= summary.resident_bytes.max(1)
}

/// Whether no kept memory to speak of is seen.
fn is_little(summary: &RssSummary) -> bool {
    summary.kept_bytes.saturating_mul(100) < summary.resident_bytes
}

fn change_of(judged: &Judged) -> f64 {
    judged.b as f64 / judged.a.max(1) as f64 - 1.0
}

/// Why RSS and heap disagree. A mean over time also changes where one phase of a program takes longer; kept
/// and untouched memory do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The allocator keeps freed memory.
    Kept,
    /// Requested memory was never written to.
    Untouched,
    /// A huge page is resident as a whole, and the two may have other ones.
    HugePages,
    /// Neither is clear.
    Unknown,
}

impl Cause {
    fn of(system: &SystemDifferences, sides: [&Side; 2]) -> Cause {
        let [a, b] = sides.map(|side| side.thp);
        if Thp::may_explain_difference(a, b) || sides.iter().any(|side| side.huge_bytes > 0) {
            return Cause::HugePages;
        }
        let by = |judged: &Judged| match judged.is_clear() {
            true => judged.a.abs_diff(judged.b) as f64 / system.resident.a.max(1) as f64,
            false => 0.0,
        };
        let (kept, untouched) = (by(&system.kept), by(&system.untouched));
        match kept.max(untouched) < PARTED {
            true => Cause::Unknown,
            false if kept >= untouched => Cause::Kept,
            false => Cause::Untouched,
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Cause::Kept => "The rest is due to the allocator, not to the ABI.",
            Cause::Untouched => "The rest was allocated and never written to: the system gives no memory for it.",
            Cause::HugePages => {
                "Huge pages (2 MiB) are resident as a whole: the readings do not show what the allocator keeps and what is never written to."
            }
            Cause::Unknown => {
                "By the readings, neither keeps more of what was freed, or leaves more untouched, than the other, by more than \
                 recordings of one differ: when each has how much makes the rest."
            }
        }
    }

    /// The kept, or untouched, memory of each side.
    fn of_each(self, a: &Side, b: &Side, system: &SystemDifferences) -> Option<String> {
        let summaries = [(a, a.system?), (b, b.system?)];
        let of_side = |(side, summary): (&Side, RssSummary)| {
            match (is_little(&summary), is_hidden(&summary)) {
            (true, false) => format!("{} keeps almost no freed memory", side.name),
            (true, true) => format!("no freed memory is seen that {} keeps", side.name),
            (false, is_hidden) => format!(
                "{} keeps {}{} of freed memory, {} of them within the heap, of which only the top returns to the system",
                side.name,
                if is_hidden { "at least " } else { "" },
                bytes(summary.kept_bytes),
                bytes(summary.kept_in_heap_bytes)
            ),
        }
        };
        match self {
            Cause::Kept => Some(format!("{}.", summaries.map(of_side).join("; "))),
            Cause::Untouched => Some(format!(
                "{} has {} that it does not write to for a twentieth of the run at least, {} {}.",
                a.name,
                bytes(system.untouched.a),
                b.name,
                bytes(system.untouched.b)
            )),
            Cause::HugePages => Some(format!(
                "The setting of transparent huge pages is {} for {} and {} for {}; the most that was read in huge pages is {} of {} and \
                 {} of {}.",
                thp(a),
                a.name,
                thp(b),
                b.name,
                bytes(a.huge_bytes),
                a.name,
                bytes(b.huge_bytes),
                b.name
            )),
            Cause::Unknown => None,
        }
    }
}

/// The setting of transparent huge pages.
fn thp(side: &Side) -> &'static str {
    side.thp.map_or("not known", Thp::name)
}

/// The number of large blocks that return to the system at once, where that differs.
fn large_blocks(a: &Side, b: &Side) -> Option<String> {
    let all = |side: &Side| side.large_blocks.0 + side.large_blocks.1;
    if a.large_blocks.0 * all(b) == b.large_blocks.0 * all(a) {
        return None;
    }
    let had =
        |side: &Side| format!("{} of {}'s {}", number(side.large_blocks.0), side.name, number(all(side)));
    Some(format!(
        "Of the blocks of at least 128 KiB, {} and {} had a mapping of their own, which returns to the system at once. \
         glibc moves that threshold up to the size of what was freed, to 32 MiB at most in LP64 and to 512 KiB in \
         ILP32 (mallopt(3), M_MMAP_THRESHOLD); --set-env MALLOC_MMAP_THRESHOLD_=131072 pins it for all variants.",
        had(a),
        had(b)
    ))
}

#[cfg(test)]
mod tests {
    use widthwise_verdict::repeats::Difference;
    use widthwise_verdict::Word;

    use super::*;

    fn judged(word: Word, a: u64, b: u64) -> Judged {
        Judged { quantity: "mean_asked", a, b, found: Difference { word, ..Difference::withheld("") } }
    }

    #[test]
    fn only_an_established_equality_is_called_as_much() {
        assert_eq!(less(&judged(Word::Lower, 200, 150)), "25 % less");
        assert_eq!(
            less(&judged(Word::NoDifference, 1000, 1001)),
            "as much, within the variation of the recordings"
        );
        for (b, words) in [(150, "25 % less"), (250, "25 % more")] {
            let text = less(&judged(Word::Inconclusive, 200, b));
            assert_eq!(text, format!("{words}, within the variation of the recordings"));
        }
    }

    #[test]
    fn what_untouched_memory_may_hide_is_a_lower_bound() {
        let of = |kept_bytes, untouched_bytes| {
            let summary = RssSummary {
                resident_bytes: 4_000_000,
                kept_bytes,
                untouched_bytes,
                ..RssSummary::default()
            };
            kept_of_one(&summary, 0)
        };
        assert_eq!(of(2_000_000, 0), "the allocator keeps 2.00 MB");
        assert_eq!(of(0, 0), "the allocator keeps 0 B");
        let both = of(2_000_000, 20_000_000);
        assert!(both.starts_with("the allocator keeps at least 2.00 MB, and at least 20.0 MB of "), "{both}");
        let hidden = of(0, 20_000_000);
        assert!(hidden.contains("do not show how much the allocator keeps"), "{hidden}");
    }

    #[test]
    fn no_difference_is_due_to_the_allocator_if_one_side_has_huge_pages() {
        let system = SystemDifferences {
            resident: judged(Word::Higher, 400, 600),
            asked: judged(Word::NoDifference, 400, 400),
            live: judged(Word::NoDifference, 400, 400),
            given: Difference::withheld(""),
            kept: judged(Word::Higher, 0, 200),
            untouched: judged(Word::NoDifference, 0, 0),
        };
        let side = |huge_bytes| Side { huge_bytes, ..Side::default() };
        assert_eq!(Cause::of(&system, [&side(0), &side(0)]), Cause::Kept);
        assert_eq!(Cause::of(&system, [&side(0), &side(2 << 20)]), Cause::HugePages);
    }

    #[test]
    fn memory_in_huge_pages_is_not_memory_that_the_allocator_keeps() {
        let summary =
            RssSummary { resident_bytes: 4_000_000, kept_bytes: 2_000_000, ..RssSummary::default() };
        let text = kept_of_one(&summary, 4 << 20);
        assert!(text.starts_with("up to 4.19 MB are in huge pages"), "{text}");
        assert!(!text.contains("keeps 2.00 MB"), "{text}");
    }
}
