//! A campaign of many variants, written into an archive without runs: a real one of sixty variants takes an hour. The
//! numbers are synthetic, the rest is what `compare` writes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use widthwise_archive::{Archive, Metadata, VariantRow};
use widthwise_experiment::outcome::{Ending, Noise, Reading, Round, RoundKind, Run, Source};
use widthwise_experiment::{Role, VariantStatus};

/// The common prefix of all variants' names.
pub const PREFIX: &str = "tree/";
/// Why every eighth i386 variant of a large campaign is not measured.
pub const UNSUPPORTED: &str =
    "no C++ library for this ABI: `apt-get install libstdc++-12-dev-i386-cross` installs it";
const ABIS: [&str; 3] = ["x86-64", "x32", "i386"];

/// The names of this number of variants, the baseline first: `tree/x86-64/level-00`, `tree/x32/level-00` …
pub fn names(variants: usize) -> Vec<String> {
    (0..variants).map(|i| format!("{PREFIX}{}/level-{:02}", ABIS[i % 3], i / 3)).collect()
}

/// The CPU time of a variant relative to the baseline's, and its memory likewise: a third of the levels change no time.
pub fn planted(name: &str) -> (f64, f64) {
    let level: f64 = name.rsplit('-').next().and_then(|level| level.parse().ok()).unwrap_or_default();
    let (time, memory) = match name.split('/').nth(1) {
        Some("x32") => (0.97, 0.70),
        Some("i386") => (1.25, 0.72),
        _ => (1.0, 1.0),
    };
    let step = [0.0, 1.0, -1.0][level as usize % 3] * 0.008 * level;
    (time * (1.0 + step), memory * (1.0 + 0.002 * level))
}

/// Reproducible pseudo-random numbers (xorshift64*).
struct Dice(u64);

impl Dice {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Approximately normal, with variance 1 (Irwin-Hall).
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

impl super::Laboratory {
    /// A campaign of this number of variants and timed rounds, as if measured here.
    pub fn made_up(&self, variants: usize, rounds: u32) -> PathBuf {
        let names = names(variants);
        let is_unable = |i: usize| variants > 20 && i % 24 == 23;
        let mut archive = Archive::create(&self.path(".widthwise"), &metadata(&names)).unwrap();
        archive.begin_batch();
        for (i, name) in names.iter().enumerate() {
            if is_unable(i) {
                archive.set_status(name, &VariantStatus::Unsupported(UNSUPPORTED.to_owned())).unwrap();
            }
        }
        archive.warn("transparent huge pages are set to `madvise`: peak memory can depend on them").unwrap();
        let mut order: Vec<String> =
            (0..variants).filter(|i| !is_unable(*i)).map(|i| names[i].clone()).collect();
        order.push(format!("{} control", names[0]));
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        let mut clock = 0;
        for number in 0..=rounds {
            let kind = if number == 0 { RoundKind::Warmup } else { RoundKind::Timed };
            for i in (1..order.len()).rev() {
                order.swap(i, (dice.uniform() * (i + 1) as f64) as usize);
            }
            archive.begin_round(number, kind, order.len() as u32, Some(1)).unwrap();
            for (position, name) in order.iter().enumerate() {
                let run = run(&mut dice, number, position as u32, name, clock);
                clock += run.sample["wall"].value as u64 + 20_000_000;
                archive.add_run(&run, &[]).unwrap();
            }
            let is_noisy = number % 11 == 5;
            let noise = Noise {
                steal: if is_noisy { 0.02 } else { 0.003 },
                pressure: Some(0.01),
                others: 0.001,
                others_ns: Some(0),
                throttled: 0,
            };
            archive.end_round(&Round { number, kind, cpu: Some(1), noise, layout: None }).unwrap();
        }
        archive.set_stopped("that many rounds were asked for", Duration::from_nanos(clock)).unwrap();
        archive.folder().to_owned()
    }
}

fn metadata(names: &[String]) -> Metadata {
    let variants: String = names.iter().map(|name| format!("[[variant]]\nname = {name:?}\n")).collect();
    let roles = [Role::Baseline].into_iter().chain(std::iter::repeat(Role::Variant));
    let mut stored: Vec<VariantRow> =
        names.iter().zip(roles).map(|(name, role)| VariantRow::new(name, role)).collect();
    stored.push(VariantRow::new(&format!("{} control", names[0]), Role::Control));
    Metadata {
        created: "2026-11-21T10:20:30Z".into(),
        widthwise: "0.1.0".into(),
        command: ["widthwise", "compare", "widthwise.toml"].map(str::to_owned).to_vec(),
        program: "tree".into(),
        program_version: "1.0".into(),
        spec: format!("[program]\nname = \"tree\"\nsource = \"tree.cpp\"\n{variants}"),
        seed: 7,
        machine: serde_json::json!({ "settings": { "kernel": "6.1.0-32-amd64" } }),
        fingerprint: BTreeMap::new(),
        scaling: None,
        variants: stored,
    }
}

fn run(dice: &mut Dice, round: u32, position: u32, name: &str, began_ns: u64) -> Run {
    let (time, memory) = planted(name);
    let cpu = (284e6 * time * (1.0 + 0.006 * dice.normal())).round();
    let system = (cpu * 0.08 / 4e6).round() * 4e6;
    let resident = ((13.9e6 * memory + 6000.0 * dice.normal()) / 4096.0).round() * 4096.0;
    let faults = (resident / 4096.0 - 180.0).round();
    let reading = |value: f64| Reading::whole(value, Source::Rusage);
    let mut sample = BTreeMap::from([
        ("cpu", reading(cpu)),
        ("wall", Reading::whole((cpu * 1.01 + 4e5 * dice.uniform()).round(), Source::Clock)),
        ("user", reading(cpu - system)),
        ("system", reading(system)),
        ("max_rss", Reading::whole(resident, Source::ExitStop)),
        ("peak_virtual", Reading::whole((resident * 1.31 / 4096.0).round() * 4096.0, Source::ExitStop)),
        ("page_faults", reading(faults)),
        ("minor_faults", reading(faults)),
        ("major_faults", reading(0.0)),
        ("voluntary_switches", reading((1.0 + 2.0 * dice.uniform()).round())),
        ("involuntary_switches", reading((9.0 * dice.uniform()).round())),
    ]);
    if name.contains("/x32/") {
        sample.insert("runtime_cpu", reading(2.1e6));
        sample.insert("runtime_calls", reading(1840.0));
        sample.insert("runtime_resident", reading(196_608.0));
        sample.insert("runtime_faults", reading(48.0));
    }
    Run {
        variant: name.into(),
        round,
        position,
        began_ns,
        ending: Ending::Done,
        sample,
        output_digest: Some("b2:51fe".into()),
    }
}
