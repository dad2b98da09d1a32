//! The CSV contains every sample.

use std::collections::HashMap;
use std::error::Error;

use crate::campaign::{hostile, laid, repository, Laid, HOSTILE_REASON, UNSUPPORTED, UNSUPPORTED_REASON};
use widthwise_report::csv::{write, HEAD};

type Row = HashMap<String, String>;

fn rows(laid: &Laid) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut text = Vec::new();
    write(&laid.comparison(), &mut text)?;
    let rows = ::csv::Reader::from_reader(&text[..]).deserialize().collect::<Result<Vec<Row>, _>>()?;
    Ok(rows)
}

#[test]
fn every_sample_can_be_read_back() -> Result<(), Box<dyn Error>> {
    for laid in [laid(20), hostile()] {
        let rows = rows(&laid)?;
        let key = |row: &Row| (row["variant"].clone(), row["round"].clone(), row["metric"].clone());
        let by_key: HashMap<_, _> = rows.iter().map(|row| (key(row), row)).collect();
        let mut readings = 0;
        for run in &laid.runs {
            for (name, reading) in &run.sample {
                let row = by_key[&(run.variant.clone(), run.round.to_string(), (*name).to_owned())];
                assert_eq!(row["value"].parse::<f64>()?, reading.value);
                assert_eq!(row["position"].parse::<u32>()?, run.position);
                assert_eq!(row["source"], reading.source.name());
                readings += 1;
            }
        }
        assert_eq!(rows.iter().filter(|row| !row["metric"].is_empty()).count(), readings);
    }
    Ok(())
}

#[test]
fn a_variant_without_a_run_and_a_run_without_a_reading_have_a_row_with_the_reason(
) -> Result<(), Box<dyn Error>> {
    let all = rows(&laid(6))?;
    let unsupported: Vec<_> = all.iter().filter(|row| row["variant"] == UNSUPPORTED).collect();
    assert_eq!(unsupported.len(), 1);
    assert_eq!(
        (unsupported[0]["status"].as_str(), unsupported[0]["reason"].as_str()),
        ("unsupported", UNSUPPORTED_REASON)
    );
    assert_eq!((unsupported[0]["round"].as_str(), unsupported[0]["value"].as_str()), ("", ""));

    let all = rows(&hostile())?;
    assert!(all.iter().any(|row| row["reason"] == HOSTILE_REASON), "text is unchanged");
    let failed: Vec<_> = all.iter().filter(|row| row["ending"] == "spawn-failed").collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["metric"], "");
    Ok(())
}

#[test]
fn rounds_that_make_no_verdict_are_marked() -> Result<(), Box<dyn Error>> {
    let rows = rows(&laid(6))?;
    let kinds = |kind: &str| rows.iter().filter(|row| row["kind"] == kind && row["metric"] == "cpu").count();
    assert_eq!((kinds("warmup"), kinds("timed"), kinds("interrupted")), (8, 24, 2));
    Ok(())
}

#[test]
fn the_page_about_the_csv_names_every_column() -> Result<(), Box<dyn Error>> {
    let page = std::fs::read_to_string(repository("docs/csv.md"))?;
    for column in HEAD {
        assert!(page.contains(&format!("`{column}`")), "{column} is not in docs/csv.md");
    }
    Ok(())
}
