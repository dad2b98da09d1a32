//! The queries in the documentation return what it describes.

use crate::sample;
use crate::sample::VARIANTS;
use rusqlite::types::Value;
use rusqlite::Connection;
use widthwise_archive::{Archive, VERSION};
use widthwise_experiment::outcome::{Noise, Reading, Round, RoundKind, Source};

const CHAPTER: &str = include_str!("../../../docs/archive.md");

/// The rows that each query of the chapter finds.
fn query_rows(connection: &Connection) -> Vec<Vec<Vec<Value>>> {
    let queries: Vec<&str> =
        CHAPTER.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(queries.len(), 3);
    queries
        .into_iter()
        .map(|query| {
            let mut statement = connection.prepare(query).unwrap();
            let columns = statement.column_count();
            let rows = statement.query_map([], |row| (0..columns).map(|column| row.get(column)).collect());
            rows.unwrap().collect::<rusqlite::Result<_>>().unwrap()
        })
        .collect()
}

fn text(words: &str) -> Value {
    Value::Text(words.to_owned())
}

#[test]
fn the_queries_of_the_chapter_return_what_it_describes() {
    let parent = tempfile::tempdir().unwrap();
    let mut archive = Archive::create(parent.path(), &sample::metadata()).unwrap();
    let rounds = [
        (RoundKind::Warmup, Noise::default()),
        (RoundKind::Timed, Noise::default()),
        (
            RoundKind::Timed,
            Noise { steal: 0.025, pressure: None, others: 0.5, others_ns: Some(40_000_000), throttled: 2 },
        ),
    ];
    for (number, (kind, noise)) in (0..).zip(rounds) {
        archive.begin_round(number, kind, 2, Some(1)).unwrap();
        for (position, variant) in (0..).zip(&VARIANTS[..2]) {
            let mut run = sample::run(number, position, variant);
            // The baseline takes 4, 8, 16; the other 1, 4, 1 …: ratios of 1/2 and 1/16 in the timed rounds.
            let value = match (position, number) {
                (0, _) => f64::from(4 << number),
                (_, 1) => 4.0,
                (_, _) => 1.0,
            };
            run.sample = [("cpu", Reading::whole(value, Source::Taskstats))].into();
            archive.add_run(&run, &[]).unwrap();
        }
        archive.end_round(&Round { number, kind, cpu: Some(1), noise, layout: None }).unwrap();
    }
    archive.begin_round(3, RoundKind::Timed, 2, None).unwrap();
    archive.add_run(&sample::run(3, 0, VARIANTS[0]), &[]).unwrap();
    let file = archive.folder().join("campaign.sqlite");
    drop(archive);

    let found = query_rows(&Connection::open(file).unwrap());
    let mean = |variant: &str, mean, least, most| {
        let numbers = [mean, least, most].map(Value::Real);
        [vec![text(variant), text("cpu"), Value::Integer(2)], numbers.to_vec(), vec![text("nanoseconds")]]
            .concat()
    };
    assert_eq!(found[0], [mean(VARIANTS[1], 2.5, 1.0, 4.0), mean(VARIANTS[0], 12.0, 8.0, 16.0)]);

    let ratios = [0.28125, 0.0625, 0.5].map(Value::Real);
    assert_eq!(found[1], [[vec![text(VARIANTS[1]), Value::Integer(2)], ratios.to_vec()].concat()]);

    let disturbed = |round, kind: &str, cpu, rest: [Value; 3]| {
        [vec![Value::Integer(round), text(kind), cpu], rest.to_vec()].concat()
    };
    assert_eq!(
        found[2],
        [
            disturbed(
                2,
                "timed",
                Value::Integer(1),
                [Value::Real(2.5), Value::Real(50.0), Value::Integer(2)]
            ),
            disturbed(3, "interrupted", Value::Null, [Value::Null, Value::Null, Value::Null]),
        ]
    );
}

#[test]
fn the_chapter_names_this_version_and_every_table() {
    assert!(CHAPTER.contains(&format!("the archive version,\nnow {VERSION}")));
    let parent = tempfile::tempdir().unwrap();
    let archive = Archive::create(parent.path(), &sample::metadata()).unwrap();
    let connection = Connection::open(archive.folder().join("campaign.sqlite")).unwrap();
    let mut statement =
        connection.prepare("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')").unwrap();
    for name in statement.query_map([], |row| row.get::<_, String>(0)).unwrap() {
        let name = name.unwrap();
        assert!(CHAPTER.contains(&format!("`{name}`")), "{name}");
    }
    assert!(CHAPTER.contains(&format!("{:#x}", 0x5744_5448)));
}
