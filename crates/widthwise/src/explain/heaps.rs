//! The recorded heaps of one side or of two: read, with their sites.

use std::collections::BTreeSet;

use widthwise_anatomy::heap::site::{self, Pair, Site};
use widthwise_anatomy::heap::types::TypedHeap;
use widthwise_anatomy::heap::wrappers::{self, Wrapper};
use widthwise_anatomy::heap::{Column, Symbols};
use widthwise_anatomy::layout::Weights;
use widthwise_report::heap::{short_name, Explanation, SitePeaks};
use widthwise_report::html::flame::{self, Flame};
use widthwise_report::peaks::MaxRss;

use super::close_names::close_names;
use super::reading::{self, Read};
use super::side_logs::Source;
use super::types::{self, Side};
use crate::failure::Failure;

/// Which frames are no sites.
pub struct Frames<'a> {
    /// Functions that only pass requests on.
    pub skip: &'a [String],
    /// Wrappers that are found stay sites.
    pub keep_wrappers: bool,
}

/// The heaps of one side or of two.
pub struct Heaps {
    /// The program's name.
    pub program: String,
    /// The sides.
    pub read: Vec<Read>,
    /// Functions that are no sites, those that were found among them.
    pub skipped: Vec<String>,
    wrappers: Vec<Wrapper>,
    pairs: Vec<Pair>,
    site_peaks: Vec<SitePeaks>,
    types: Option<TypedHeap>,
}

impl Heaps {
    /// Reads the logs of all sides, and finds their sites. `symbols` names code addresses, also those of other recordings.
    ///
    /// # Errors
    /// A log cannot be read, there is none, or no stack has a frame that is to be skipped.
    pub fn read(
        program: String,
        sources: &[Source],
        frames: &Frames,
        symbols: &mut Symbols,
    ) -> Result<Heaps, Failure> {
        let mut read = Vec::new();
        for source in sources {
            read.push(reading::read(source, symbols)?);
        }
        if read.is_empty() {
            return Err(Failure::request("nothing to explain"));
        }
        check_skip_frames(frames.skip, &read)?;
        read.iter_mut().for_each(|read| say_without_callers(frames.skip, read));
        // The first recording is the one that stands for the side.
        let wrappers = frames.wrappers(&read);
        let thin = wrappers.iter().filter(|wrapper| wrapper.is_thin);
        let skipped: Vec<String> =
            frames.skip.iter().cloned().chain(thin.map(|wrapper| wrapper.function.clone())).collect();
        let sites = |read: &Read| -> Vec<Vec<Site>> {
            let all = std::iter::once(&read.profile).chain(&read.others);
            all.map(|profile| site::sites(profile, &read.program, &skipped)).collect()
        };
        let (of_a, of_b) = (sites(&read[0]), read.get(1).map(sites).unwrap_or_default());
        let pairs: Vec<Pair> = site::pairs(&of_a[0], of_b.first().map_or(&[][..], Vec::as_slice));
        let site_peaks: Vec<SitePeaks> = site::peaks(&pairs, 0, &of_a)
            .into_iter()
            .zip(site::peaks(&pairs, 1, &of_b))
            .map(|(a, b)| SitePeaks { a, b })
            .collect();
        let types = types::typed(&read[0], read.get(1), &skipped, symbols);
        Ok(Heaps { program, read, skipped, wrappers, pairs, site_peaks, types })
    }

    /// The input of their report. Ratios within `equal_within` of 1 are equal.
    pub fn explanation(&self, max_rss: Option<MaxRss>, equal_within: f64, top: usize) -> Explanation<'_> {
        Explanation {
            program: &self.program,
            a: &self.read[0].side,
            b: self.read.get(1).map(|b| &b.side),
            pairs: &self.pairs,
            site_peaks: &self.site_peaks,
            types: self.types.as_ref(),
            max_rss,
            wrappers: &self.wrappers,
            top,
            equal_within,
        }
    }

    /// The live objects of each type at the baseline's peak.
    pub fn objects(&self) -> Weights {
        self.types.as_ref().map(|types| types.objects(Side::A)).unwrap_or_default()
    }

    /// A flame graph of the difference at the peak.
    pub fn flame<'a>(&'a self, title: &'a str) -> Flame<'a> {
        let side = |read: &'a Read| flame::Side {
            name: &read.side.name,
            profile: &read.profile,
            program: &read.program,
        };
        Flame {
            title,
            column: Column::PeakBytes,
            first: side(&self.read[0]),
            second: self.read.get(1).map(side),
            through: &self.skipped,
        }
    }

    /// Why the sides cannot be compared, if a recording is incomplete.
    pub fn incompleteness(&self) -> Option<String> {
        self.read.iter().find_map(|read| read.side.incompleteness())
    }
}

impl Frames<'_> {
    /// The functions that hand on nearly all requests, of either side, beside those that the user has named.
    fn wrappers(&self, read: &[Read]) -> Vec<Wrapper> {
        if self.keep_wrappers {
            return Vec::new();
        }
        wrappers::find_in_all(read.iter().map(|read| (&read.profile, read.program.as_str())), self.skip)
    }
}

/// Remarks where every stack ends at a function of `--skip-frames`.
fn say_without_callers(names: &[String], read: &mut Read) {
    for name in names {
        let profile = &read.profile;
        if site::goes_through(profile, name) && !site::has_caller(profile, name) {
            read.side.remarks.push(format!(
                "--skip-frames {name}: every stack ends at that function, so that there is no caller to show"
            ));
        }
    }
}

/// Refuses `--skip-frames` with a function that no stack of any recording goes through.
fn check_skip_frames(names: &[String], read: &[Read]) -> Result<(), Failure> {
    let profiles = || read.iter().flat_map(|read| std::iter::once(&read.profile).chain(&read.others));
    for name in names {
        if profiles().any(|profile| site::goes_through(profile, name)) {
            continue;
        }
        let functions: BTreeSet<String> = profiles()
            .flat_map(|profile| &profile.frames)
            .filter(|frame| !frame.function.starts_with("0x"))
            .map(|frame| short_name(&frame.function))
            .collect();
        return Err(Failure::request(format!(
            "--skip-frames {name}: no stack goes through a function of that name{}",
            close_names(name, &functions)
        )));
    }
    Ok(())
}
