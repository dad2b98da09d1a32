//! Campaigns of many metrics, such as the operations of the micro suite: a row for each metric and a column for each variant.

use widthwise_experiment::metric::Family;
use widthwise_experiment::Metric;
use widthwise_verdict::wording::{self, margin};
use widthwise_verdict::{Verdict, Word};

use crate::columns::Columns;
use crate::comparison::Comparison;
use crate::format::{self, counted, listed};
use crate::sanitize;

/// With fewer reported metrics than this, a column each is easier to read.
const FEWEST_METRICS: usize = 3;
/// More variants than this do not fit side by side.
pub const MOST_VARIANTS: usize = 6;

/// A metric of every variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The metric.
    pub metric: Metric,
    /// Its title, without what all titles begin with.
    pub title: String,
    /// The baseline's figure.
    pub baseline: String,
    /// Each variant's, in the order of [`Table::variants`].
    pub cells: Vec<Cell>,
    /// The detection floor; empty where there is none.
    pub floor: String,
}

/// One verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// What is shown.
    pub text: String,
    /// The verdict's word; none of a variant that was not measured.
    pub word: Option<Word>,
    /// The verdict's reason.
    pub reason: Option<String>,
}

/// Metrics that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What the rows are.
    pub head: &'static str,
    /// The columns beside the baseline.
    pub variants: Vec<String>,
    /// In the experiment's order.
    pub rows: Vec<Row>,
    /// The titles of further rows, which have 0 in every variant that was counted.
    pub zero: Vec<String>,
}

impl Table {
    /// A line on the rows that are left out.
    pub fn zeros(&self) -> Option<String> {
        (!self.zero.is_empty())
            .then(|| format!("{}: 0 in every variant that was counted: {}", self.head, self.zero.join(", ")))
    }
}

/// What the names of the micro suite's lists begin with.
const LISTS: &str = "micro.chase_";

/// The nodes of a list of the micro suite: `micro.chase_16k` has 16384. None for other operations.
pub fn nodes(metric: &str) -> Option<u64> {
    let text = metric.strip_prefix(LISTS)?;
    let (digits, unit) = match (text.strip_suffix('k'), text.strip_suffix('m')) {
        (Some(digits), _) => (digits, 1 << 10),
        (_, Some(digits)) => (digits, 1 << 20),
        _ => (text, 1),
    };
    Some(u64::from(digits.parse::<u32>().ok()?) * unit)
}

/// Whether a campaign is shown this way.
pub fn applies(comparison: &Comparison) -> bool {
    let experiment = comparison.campaign.experiment;
    let own = experiment.metrics.iter().filter(|metric| is_own(metric)).count();
    let variants = experiment.variants.len();
    own >= FEWEST_METRICS && (variants <= MOST_VARIANTS || own > variants)
}

fn is_own(metric: &Metric) -> bool {
    matches!(metric.family, Family::Reported | Family::Operation | Family::MachineOperation)
}

/// Metrics of one kind with the variants that may have them: of these come the tables and the sentences.
struct Group {
    /// What the rows of its tables are.
    head: &'static str,
    /// The noun of its sentences; none where no sentence is about it.
    noun: Option<&'static str>,
    /// The metrics that are rows.
    metrics: Vec<Metric>,
    /// Those that have 0 in every variant that was counted.
    zero: Vec<Metric>,
    /// The variants beside the baseline.
    variants: Vec<String>,
}

impl Group {
    /// A metric's title without what all of the group begin with, and without what the head says.
    fn title(&self, metric: Metric) -> String {
        let ends = [".instructions", ".instructions_user", ".instructions_kernel"];
        let own = &metric.title[common_start(self.metrics.iter().chain(&self.zero))..];
        sanitize::line(ends.iter().find_map(|end| own.strip_suffix(end)).unwrap_or(own))
    }

    /// Tables with the baseline and at most `most` - 1 variants each; the first one has the line on zeros.
    fn tables(&self, comparison: &Comparison, most: usize) -> Vec<Table> {
        if self.metrics.is_empty() {
            return Vec::new();
        }
        let mut parts: Vec<&[String]> = self.variants.chunks(most.max(2) - 1).collect();
        if parts.is_empty() {
            parts.push(&[]);
        }
        let mut tables: Vec<Table> =
            parts.into_iter().map(|variants| self.table(comparison, variants)).collect();
        tables[0].zero = self.zero.iter().map(|metric| self.title(metric)).collect();
        tables
    }

    fn table(&self, comparison: &Comparison, variants: &[String]) -> Table {
        let baseline = &comparison.campaign.experiment.baseline;
        let row = |metric: Metric| Row {
            metric,
            title: self.title(metric),
            baseline: comparison
                .typical(baseline, metric)
                .map_or_else(|| Word::NoData.text().to_owned(), format::typical),
            cells: variants.iter().map(|variant| cell(comparison, variant, metric)).collect(),
            floor: comparison.floor_text(metric).unwrap_or_default(),
        };
        let rows = self.metrics.iter().map(|metric| row(metric)).collect();
        Table { head: self.head, rows, variants: variants.to_vec(), zero: Vec::new() }
    }
}

/// The tables: of a campaign of many metrics what the program reported, the instructions of its operations, and all else; of any
/// campaign the classes of instructions and the misses of modelled caches. A table has the baseline and at most `most` - 1 variants;
/// others are in a table of their own below.
pub fn tables(comparison: &Comparison, most: usize) -> Vec<Table> {
    groups(comparison).iter().flat_map(|group| group.tables(comparison, most)).collect()
}

fn groups(comparison: &Comparison) -> Vec<Group> {
    let mut groups = if applies(comparison) { groups_of_many(comparison) } else { Vec::new() };
    for (head, family) in
        [("instructions by class", Family::InstructionClass), ("modelled caches", Family::CacheModel)]
    {
        let metrics = comparison.campaign.experiment.metrics.iter().copied();
        let metrics: Vec<Metric> = metrics.filter(|metric| metric.family == family).collect();
        // No line lists the classes that no variant has.
        let metrics = with_some(comparison, &metrics).0;
        groups.push(Group { head, noun: None, metrics, zero: Vec::new(), variants: measured(comparison) });
    }
    groups
}

/// The metrics that are not 0 in every variant that has figures of this kind; and the others. Of classes and misses, those without any
/// figure are others, too.
fn with_some(comparison: &Comparison, metrics: &[Metric]) -> (Vec<Metric>, Vec<Metric>) {
    let experiment = comparison.campaign.experiment;
    let value =
        |variant: &str, metric: Metric| comparison.typical(variant, metric).map(|typical| typical.value);
    let names = experiment.variants.iter().map(|variant| variant.name.as_str());
    let has_figures = |name: &&str| metrics.iter().any(|metric| value(name, metric).is_some());
    let counted: Vec<&str> = names.filter(has_figures).collect();
    let is_some = |metric: &Metric| {
        let is_counted = counted.iter().any(|name| value(name, metric).is_some());
        let is_zero = !counted.is_empty() && counted.iter().all(|name| value(name, metric) == Some(0.0));
        (is_counted || metric.family == Family::MachineOperation) && !is_zero
    };
    metrics.iter().copied().partition(is_some)
}

/// The variants beside the baseline that were measured.
fn measured(comparison: &Comparison) -> Vec<String> {
    let is_measured = |name: &String| comparison.campaign.not_measured(name).is_none();
    beside(comparison).into_iter().filter(is_measured).collect()
}

/// The variants beside the baseline.
fn beside(comparison: &Comparison) -> Vec<String> {
    let experiment = comparison.campaign.experiment;
    let names = experiment.variants.iter().map(|variant| variant.name.clone());
    names.filter(|name| *name != experiment.baseline).collect()
}

fn groups_of_many(comparison: &Comparison) -> Vec<Group> {
    let all = Columns::of(comparison.campaign.experiment).all();
    let of = |family: Family| -> Vec<Metric> {
        all.iter().copied().filter(|metric| metric.family == family).collect()
    };
    let others: Vec<Metric> = all.iter().copied().filter(|metric| !is_own(metric)).collect();
    let (kernel, user): (Vec<Metric>, Vec<Metric>) =
        of(Family::MachineOperation).into_iter().partition(|metric| metric.is_of_kernel());
    // A campaign with other kernels has many columns: only those that have something in them.
    let on_kernels = !user.is_empty();
    let timed: Vec<String> = {
        let is_timed = |name: &String| !comparison.campaign.experiment.is_emulated(name);
        beside(comparison).into_iter().filter(|name| !on_kernels || is_timed(name)).collect()
    };
    let counted = if on_kernels { measured(comparison) } else { beside(comparison) };
    let kinds = [
        ("metric", Some("metric"), of(Family::Reported), &timed),
        ("instructions, emulated", Some("instruction count"), of(Family::Operation), &timed),
        ("user instructions", Some("user instruction count"), user, &counted),
        ("kernel instructions", Some("kernel instruction count"), kernel, &counted),
        ("of the whole run", None, others, &counted),
    ];
    let group = |(head, noun, metrics, variants): (_, _, Vec<Metric>, &Vec<String>)| {
        let is_counted = metrics.iter().any(|metric| metric.family == Family::MachineOperation);
        let (metrics, zero) =
            if is_counted { with_some(comparison, &metrics) } else { (metrics, Vec::new()) };
        Group { head, noun, metrics, zero, variants: variants.clone() }
    };
    kinds.map(group).into()
}

fn cell(comparison: &Comparison, variant: &str, metric: Metric) -> Cell {
    if comparison.campaign.not_measured(variant).is_some() {
        return Cell { text: "not measured".to_owned(), word: None, reason: None };
    }
    let verdict = comparison.verdict(variant, metric);
    Cell {
        text: comparison.figure(variant, metric).unwrap_or_else(|| Word::NoData.text().to_owned()),
        word: Some(verdict.map_or(Word::NoData, |verdict| verdict.word)),
        reason: verdict.and_then(|verdict| verdict.reason.as_deref()).map(sanitize::line),
    }
}

/// How many bytes all titles begin with, up to a point.
fn common_start<'m>(metrics: impl Iterator<Item = &'m Metric> + Clone) -> usize {
    let first = metrics.clone().next();
    let start = first.and_then(|metric| Some(&metric.title[..=metric.title.find('.')?]));
    let Some(start) = start else { return 0 };
    let mut titles = metrics.map(|metric| metric.title);
    if titles.all(|title| title.len() > start.len() && title.starts_with(start)) {
        start.len()
    } else {
        0
    }
}

/// A sentence on each variant: how many metrics are lower and higher, and which most.
pub fn sentences(comparison: &Comparison) -> Vec<String> {
    let baseline = &comparison.campaign.experiment.baseline;
    let about = |group: &Group, variant: &String| {
        let noun = group.noun?;
        let verdicts: Vec<(Metric, &Verdict)> = group
            .metrics
            .iter()
            .filter_map(|metric| Some((*metric, comparison.verdict(variant, metric)?)))
            .collect();
        let is_measured = comparison.campaign.not_measured(variant).is_none();
        sentence(group, variant, baseline, noun, &verdicts).filter(|_| is_measured)
    };
    let groups = groups(comparison);
    let sentences =
        groups.iter().flat_map(|group| group.variants.iter().map(move |variant| (group, variant)));
    sentences.filter_map(|(group, variant)| about(group, variant)).map(|text| sanitize::line(&text)).collect()
}

fn sentence(
    group: &Group,
    variant: &str,
    baseline: &str,
    noun: &str,
    verdicts: &[(Metric, &Verdict)],
) -> Option<String> {
    let first = verdicts.first()?.1;
    let count = |word: Word| verdicts.iter().filter(|(_, verdict)| verdict.word == word).count();
    let parts: Vec<String> = [
        (Word::Lower, "lower".to_owned()),
        (Word::Higher, "higher".to_owned()),
        (Word::NoDifference, format!("without difference (within {})", margin(first.equal_within))),
        (Word::Inconclusive, "inconclusive".to_owned()),
        (Word::Withheld, "withheld".to_owned()),
        (Word::NoData, "without data".to_owned()),
    ]
    .into_iter()
    .filter(|(word, _)| count(*word) > 0)
    .map(|(word, how)| format!("{} {how}", count(word)))
    .collect();
    let mut text =
        format!("{variant} against {baseline}, {}: {}.", counted(verdicts.len(), noun), listed(&parts));
    let by_ratio = |a: &&&(Metric, &Verdict), b: &&&(Metric, &Verdict)| {
        a.1.ratio.unwrap_or(1.0).total_cmp(&b.1.ratio.unwrap_or(1.0))
    };
    let of = |word: Word| verdicts.iter().filter(move |(_, verdict)| verdict.word == word);
    let lowest = of(Word::Lower).filter(|(_, verdict)| verdict.ratio.is_some());
    let highest = of(Word::Higher).filter(|(_, verdict)| verdict.ratio.is_some());
    let lowest: Vec<_> = lowest.collect();
    let highest: Vec<_> = highest.collect();
    let ends = [("Lowest", lowest.iter().min_by(by_ratio)), ("Highest", highest.iter().max_by(by_ratio))];
    for (word, end) in ends {
        if let Some((metric, verdict)) = end {
            text += &format!(" {word}: {}, {}.", group.title(metric), wording::interval(verdict));
        }
    }
    Some(text)
}

/// The tables in Markdown; `escaped` makes a text harmless there.
pub fn markdown(comparison: &Comparison, escaped: impl Fn(&str) -> String) -> String {
    let baseline = sanitize::line(&comparison.campaign.experiment.baseline);
    let mut text = String::new();
    for table in tables(comparison, MOST_VARIANTS) {
        let names = table.variants.iter().map(|name| escaped(&sanitize::line(name)));
        let heads: Vec<String> = [table.head.to_owned(), format!("**{}**", escaped(&baseline))]
            .into_iter()
            .chain(names)
            .chain(["floor".to_owned()])
            .collect();
        text += &format!("| {} |\n|---|{}\n", heads.join(" | "), "---:|".repeat(heads.len() - 1));
        for row in &table.rows {
            let cells = row.cells.iter().map(|cell| cell.text.as_str());
            let all =
                [row.title.as_str(), &row.baseline].into_iter().chain(cells).chain([row.floor.as_str()]);
            text += &format!("| {} |\n", all.map(&escaped).collect::<Vec<_>>().join(" | "));
        }
        text.push('\n');
        if let Some(line) = table.zeros() {
            text += &format!("{}.\n\n", escaped(&line));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::nodes;

    #[test]
    fn the_nodes_of_a_list_are_in_the_metrics_name() {
        assert_eq!(nodes("micro.chase_256"), Some(256));
        assert_eq!(nodes("micro.chase_16k"), Some(16 << 10));
        assert_eq!(nodes("micro.chase_1m"), Some(1 << 20));
        assert_eq!(nodes("micro.getpid"), None);
    }
}
