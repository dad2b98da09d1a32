//! The files that the counting plugin writes (the format is described in runtime/plugin/plugin.c). Pure.

use std::path::Path;

/// Counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Instructions below the kernel's half of the address space.
    pub user: u64,
    /// The others.
    pub kernel: u64,
}

impl Counts {
    fn plus(self, other: Counts) -> Option<Counts> {
        Some(Counts {
            user: self.user.checked_add(other.user)?,
            kernel: self.kernel.checked_add(other.kernel)?,
        })
    }

    fn minus(self, other: Counts) -> Option<Counts> {
        Some(Counts {
            user: self.user.checked_sub(other.user)?,
            kernel: self.kernel.checked_sub(other.kernel)?,
        })
    }
}

/// The two ends of a stretch of the measured program (workloads/micro/counts.c).
const STRETCH_BEGINS: u64 = 16;
const STRETCH_ENDS: u64 = 17;

/// The last line of a file: how a process ended for the plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    End,
    Exec,
    Running,
}

/// Misses in the order of the file's words: L1i, L1d, last level, iTLB, dTLB; of user space, then of the kernel.
pub type Misses = [u64; 10];

/// Executions of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// How often.
    pub counts: Counts,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A file, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountFile {
    marks: Vec<(u64, Counts)>,
    misses: Vec<(u64, Misses)>,
    /// By the marker before which they were executed; 0: all of them.
    executed: Vec<(u64, Executed)>,
    last: (Last, Counts),
}

impl CountFile {
    /// Reads the text of a file. The error is a sentence.
    pub fn parse(text: &str) -> Result<CountFile, String> {
        let mut lines = text.lines().enumerate();
        match lines.next() {
            Some((_, first)) if first.starts_with("widthwise-counts 1 ") => {}
            _ => return Err("line 1: this is no file of the counting plugin, version 1".to_owned()),
        }
        let (mut marks, mut misses, mut executed, mut last) = (Vec::new(), Vec::new(), Vec::new(), None);
        for (number, line) in lines {
            let wrong = || format!("line {}: {line:?} is no line of the counting plugin", number + 1);
            let words: Vec<&str> = line.split(' ').collect();
            let counts = |words: &[&str]| match words {
                ["user", user, "kernel", kernel] => {
                    Some(Counts { user: user.parse().ok()?, kernel: kernel.parse().ok()? })
                }
                _ => None,
            };
            let ending = |last| Some((last, counts(&words[1..])?));
            match words[0] {
                "mark" => {
                    let number = words.get(1).and_then(|word| word.parse().ok());
                    let mark = number.zip(words.get(2..).and_then(counts)).ok_or_else(wrong)?;
                    marks.push(mark);
                }
                "misses" => misses.push(misses_of(&words[1..]).ok_or_else(wrong)?),
                "executed" => {
                    let [_, mark, rest @ .., bytes] = &words[..] else { return Err(wrong()) };
                    let counts = counts(rest).zip(bytes_of(bytes)).zip(mark.parse().ok());
                    let ((counts, bytes), mark) = counts.ok_or_else(wrong)?;
                    executed.push((mark, Executed { counts, bytes }));
                }
                "end" => last = Some(ending(Last::End).ok_or_else(wrong)?),
                "exec" => last = Some(ending(Last::Exec).ok_or_else(wrong)?),
                "running" => last = Some(ending(Last::Running).ok_or_else(wrong)?),
                _ => return Err(wrong()),
            }
        }
        // The machine is ended from inside, and may not write a last line.
        let last = last.unwrap_or((Last::Running, Counts::default()));
        Ok(CountFile { marks, misses, executed, last })
    }

    /// What was executed before a marker, and after the one before it.
    pub fn executed(&self, before: u64) -> impl Iterator<Item = &Executed> {
        self.executed.iter().filter(move |(mark, _)| *mark == before).map(|(_, executed)| executed)
    }

    /// The misses between two markers.
    pub fn misses(&self, from: u64, to: u64) -> Result<Misses, String> {
        let at = |number: u64| {
            let found = self.misses.iter().find(|(own, _)| *own == number).map(|(_, misses)| *misses);
            found.ok_or_else(|| format!("the model of caches has no figures at marker {number}"))
        };
        let (from, to) = (at(from)?, at(to)?);
        Ok(std::array::from_fn(|place| to[place].saturating_sub(from[place])))
    }

    /// What lies between the markers of each of the program's own stretches, in their order.
    pub fn stretches(&self) -> Result<Vec<Counts>, String> {
        let own: Vec<&(u64, Counts)> =
            self.marks.iter().filter(|(number, _)| [STRETCH_BEGINS, STRETCH_ENDS].contains(number)).collect();
        let stretch = |pair: &[&(u64, Counts)]| match pair {
            [(STRETCH_BEGINS, from), (STRETCH_ENDS, to)] => to.minus(*from),
            _ => None,
        };
        let all: Option<Vec<Counts>> = own.chunks(2).map(stretch).collect();
        all.ok_or_else(|| format!("markers {STRETCH_BEGINS} and {STRETCH_ENDS} do not take turns"))
    }

    /// What lies between two markers, each of which stands there once.
    pub fn between(&self, from: u64, to: u64) -> Result<Counts, String> {
        let one = |number| {
            let mut all = self.marks.iter().filter(|(own, _)| *own == number);
            match (all.next(), all.next()) {
                (Some((_, counts)), None) => Ok(*counts),
                (None, _) => Err(format!("marker {number} was not executed")),
                _ => Err(format!("marker {number} was executed more than once")),
            }
        };
        one(to)?.minus(one(from)?).ok_or_else(|| format!("marker {to} was executed before marker {from}"))
    }
}

/// `3 user 1 2 3 4 5 kernel 6 7 8 9 10`
fn misses_of(words: &[&str]) -> Option<(u64, Misses)> {
    let [mark, "user", user @ .., _, _, _, _, _, _] = words else { return None };
    let ["kernel", kernel @ ..] = words.get(words.len().checked_sub(6)?..)? else { return None };
    let all: Option<Vec<u64>> = user.iter().chain(kernel).map(|word| word.parse().ok()).collect();
    Some((mark.parse().ok()?, all?.try_into().ok()?))
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// What the files of a program's processes have together.
#[derive(Debug, Default)]
pub struct ProgramCounts {
    /// Instructions.
    pub user: u64,
    /// By their bytes, where that was asked for.
    pub executed: Vec<Executed>,
}

/// The instructions of every process of a program: the sum of its files. The error is a sentence.
pub fn of_program(folder: &Path) -> Result<ProgramCounts, String> {
    let mut executed = Vec::new();
    let unreadable = |error: std::io::Error| format!("the plugin's counts: {error}");
    let mut sum = Counts::default();
    let mut files = 0;
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let bytes = std::fs::read(entry.map_err(unreadable)?.path()).map_err(unreadable)?;
        let file = CountFile::parse(&String::from_utf8_lossy(&bytes))?;
        executed.extend(file.executed(0).cloned());
        match file.last {
            (Last::End, counts) => sum = sum.plus(counts).ok_or("the counts are too large")?,
            (Last::Exec, _) => {
                return Err("it executes another program, which qemu-user does not emulate".to_owned())
            }
            (Last::Running, _) => {
                return Err("a process of it was killed before the plugin wrote its counts".to_owned())
            }
        }
        files += 1;
    }
    if files == 0 {
        return Err("the plugin left no counts".to_owned());
    }
    Ok(ProgramCounts { user: sum.user, executed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str =
        "widthwise-counts 1 x86_64 system\nmark 1 user 10 kernel 200\nmark 2 user 12 kernel 260\n\
                        mark 3 user 13 kernel 300\nmark 4 user 113 kernel 900\nend user 114 kernel 901\n";

    #[test]
    fn a_stretch_is_what_the_second_marker_has_more_than_the_first() {
        let file = CountFile::parse(TEXT).unwrap();
        assert_eq!(file.between(3, 4), Ok(Counts { user: 100, kernel: 600 }));
        assert_eq!(file.between(1, 2), Ok(Counts { user: 2, kernel: 60 }));
        assert_eq!(file.between(1, 9), Err("marker 9 was not executed".to_owned()));
        let twice = CountFile::parse(&format!("{TEXT}mark 4 user 1 kernel 1\n")).unwrap();
        assert_eq!(twice.between(3, 4), Err("marker 4 was executed more than once".to_owned()));
        assert!(file.between(4, 3).is_err());
    }

    #[test]
    fn the_programs_own_stretches_take_turns() {
        let counts = |text: &str| CountFile::parse(&format!("{TEXT}{text}")).unwrap().stretches();
        let twice = "mark 16 user 1 kernel 5\nmark 17 user 4 kernel 5\nmark 16 user 9 kernel 5\nmark 17 user 9 kernel 7\n";
        assert_eq!(counts(twice), Ok(vec![Counts { user: 3, kernel: 0 }, Counts { user: 0, kernel: 2 }]));
        assert_eq!(counts(""), Ok(Vec::new()));
        for wrong in ["mark 16 user 1 kernel 5\n", "mark 17 user 1 kernel 5\nmark 16 user 1 kernel 5\n"] {
            assert!(counts(wrong).unwrap_err().contains("do not take turns"), "{wrong}");
        }
    }

    #[test]
    fn misses_and_executed_instructions_belong_to_their_markers() {
        let text = format!(
            "{TEXT}misses 3 user 1 2 3 4 5 kernel 6 7 8 9 10\nmisses 4 user 11 2 3 4 5 kernel 6 7 8 9 30\n\
             executed 2 user 0 kernel 9 90\nexecuted 4 user 5 kernel 0 0f1f\n"
        );
        let file = CountFile::parse(&text).unwrap();
        assert_eq!(file.misses(3, 4), Ok([10, 0, 0, 0, 0, 0, 0, 0, 0, 20]));
        assert!(
            file.misses(1, 2).unwrap_err().contains("no figures at marker 2") || file.misses(1, 2).is_err()
        );
        let all: Vec<&Executed> = file.executed(4).collect();
        assert_eq!(all, [&Executed { counts: Counts { user: 5, kernel: 0 }, bytes: vec![0x0f, 0x1f] }]);
        for wrong in [
            "misses 3 user 1",
            "misses 3 user 1 2 3 4 kernel 6 7 8 9 10",
            "executed 1 user 1 kernel 1",
            "executed 1 user 1 kernel 1 9x",
        ] {
            assert!(CountFile::parse(&format!("{TEXT}{wrong}\n")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn processes_add_up_and_one_that_executes_another_program_is_no_count() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, last: &str| {
            let text = format!("widthwise-counts 1 ppc user\nrunning user 0 kernel 0\n{last}\n");
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        assert!(of_program(folder.path()).unwrap_err().contains("no counts"));
        write("counts", "end user 30 kernel 0");
        write("counts.77", "end user 12 kernel 0");
        assert_eq!(of_program(folder.path()).unwrap().user, 42);
        write("counts.78", "exec user 1 kernel 0");
        assert!(of_program(folder.path()).unwrap_err().contains("executes another program"));
        write("counts.78", "running user 1 kernel 0");
        assert!(of_program(folder.path()).unwrap_err().contains("was killed"));
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(
            text in "(mark|end|exec|running|misses|executed|user|kernel|[0-9]{1,25}|[ \\n])*",
            any in ".*",
        ) {
            for text in [text, any] {
                let _ = CountFile::parse(&text);
                if let Ok(file) = CountFile::parse(&format!("widthwise-counts 1 a b\n{text}")) {
                    let _ = file.between(1, 2);
                }
            }
        }
    }
}
