//! The spec of an archive of an earlier version: its keys get their names of this version.

/// Keys that had other names before version 4, with their sections.
const KEYS: [(&str, &str, &str); 4] = [
    ("[measure]", "until", "precision"),
    ("[measure]", "budget", "max_time"),
    ("[run]", "fixed_addresses", "no_aslr"),
    ("[run]", "together", "concurrent"),
];

/// The spec with the keys and words of this version.
pub(crate) fn migrated(text: &str) -> String {
    let line = |line: Line| {
        let Some(key) = line.key else { return line.text.to_owned() };
        let renamed = KEYS.iter().find(|(section, old, _)| (*section, *old) == (line.section, key));
        match renamed {
            Some((_, old, new)) => line.text.replacen(old, new, 1),
            None if (line.section, key) == ("[measure]", "metrics") => {
                line.text.replace("\"peak_resident", "\"max_rss")
            }
            None => line.text.to_owned(),
        }
    };
    lines(text).map(|text| line(text) + "\n").collect()
}

/// Whether variants with another output are compared.
pub(crate) fn allows_different(text: &str) -> bool {
    let is_set = |line: Line| line.key.is_some() && line.text.trim() == "allow_different = true";
    lines(text).any(|line| line.section == "[output]" && is_set(line))
}

struct Line<'a> {
    /// The head of its section.
    section: &'a str,
    /// The key that begins on it; a head and the text of a command over several lines have none.
    key: Option<&'a str>,
    text: &'a str,
}

/// The lines of a spec as `spec_text` writes it: one for each pair, except for a command between `'''`.
fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let (mut section, mut is_command) = ("", false);
    text.lines().map(move |text| {
        let is_head = !is_command && text.starts_with('[');
        let pair = text.split_once('=').filter(|_| !is_command && !is_head);
        if is_head {
            section = text;
        }
        is_command = match pair {
            Some((_, value)) => value == " '''",
            None => is_command && !text.ends_with("'''"),
        };
        Line { section, key: pair.map(|(key, _)| key.trim()), text }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_of_an_earlier_version_gets_the_keys_of_this_one() {
        let old = "[run]\ntogether = true\nfixed_addresses = true\n\n[measure]\nmetrics = [\"cpu\", \"peak_resident\"]\n\
                   until = \"1%\"\nbudget = \"5m\"\n";
        let new = "[run]\nconcurrent = true\nno_aslr = true\n\n[measure]\nmetrics = [\"cpu\", \"max_rss\"]\n\
                   precision = \"1%\"\nmax_time = \"5m\"\n";
        assert_eq!(migrated(old), new);
    }

    #[test]
    fn commands_and_names_of_the_user_keep_their_words() {
        let text = "[program]\nbuild = '''\n[run]\nbudget=5\nmake ''''\nrun = \"{build}/a until = 3\"\n\n\
                    [env.fast]\nuntil = \"3\"\nallow_different = \"1\"\n\n[run]\nsetup = '''\n[output]\n\
                    together = 1\nallow_different = true\n'''\n\n[measure.reports]\nbudget = \"count events\"\n";
        assert_eq!(migrated(text), text);
        assert!(!allows_different(text));
        assert!(allows_different(&format!("{text}\n[output]\nallow_different = true\n")));
    }
}
