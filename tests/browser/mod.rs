//! A real browser: Chromium without the parts that have a window, which starts in a third of the time. It is installed by
//! `make test`; without it these tests fail.

// Each program of tests uses a part of this.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Chromium with a profile of its own, and a folder for what it makes.
pub struct Browser {
    folder: tempfile::TempDir,
}

/// A picture of a page.
pub struct Picture {
    /// Red, green and blue of every pixel, row by row.
    pub pixels: Vec<[u8; 3]>,
    pub width: u32,
    pub height: u32,
}

impl Browser {
    pub fn new() -> Browser {
        Browser { folder: tempfile::tempdir().unwrap() }
    }

    /// What it prints, and what its console says.
    fn start(&self, options: &[&str], address: &str) -> (String, Vec<String>) {
        let output = Command::new("chromium-headless-shell")
            .args(["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--virtual-time-budget=2000", "--enable-logging=stderr", "--log-level=0"])
            .arg(format!("--user-data-dir={}", self.folder.path().join("profile").display()))
            .args(options)
            .arg(address)
            .output()
            .unwrap_or_else(|error| panic!("chromium-headless-shell: {error}; `make test` installs it"));
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{complaints}");
        // `[…:INFO:CONSOLE:1] "the message", source: file:///… (line)`
        let console =
            complaints.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect();
        (String::from_utf8_lossy(&output.stdout).into_owned(), console)
    }

    /// The page as it is after it has been loaded, and the messages of its console.
    pub fn load(&self, page: &Path) -> (String, Vec<String>) {
        self.start(&["--dump-dom"], &address(page))
    }

    /// What a piece of JavaScript answers (as text, or as a promise of it) that looks at the page, `inner`, in a `frame` of that
    /// width.
    ///
    /// The page stays as it is: it stands in a frame of another, which looks at it from outside.
    pub fn ask(&self, page: &Path, width: u32, expression: &str) -> String {
        self.ask_each(page, &[(width, expression)]).remove(0)
    }

    /// As [`ask`](Self::ask), one after the other, each with the page loaded anew: the browser's start takes longest.
    pub fn ask_each(&self, page: &Path, asked: &[(u32, &str)]) -> Vec<String> {
        let outside = self.folder.path().join("outside.html");
        let pairs: String = asked
            .iter()
            .map(|(width, expression)| format!("[{width}, async (frame, inner) => {expression}],\n"))
            .collect();
        let text = format!(
            "<!doctype html><body><script>
             (async () => {{
                 const reported = [];
                 for (const [width, answer] of [{pairs}]) {{
                     const frame = document.createElement('iframe');
                     frame.style = 'width:' + width + 'px;height:800px;border:0';
                     frame.src = '{}';
                     await new Promise(loaded => {{ frame.onload = loaded; document.body.append(frame) }});
                     try {{ reported.push(String(await answer(frame, frame.contentDocument))) }}
                     catch (error) {{ reported.push('failed: ' + error) }}
                     frame.remove();
                 }}
                 document.title = JSON.stringify(reported);
             }})()</script>",
            address(page)
        );
        std::fs::write(&outside, text).unwrap();
        let (page, _) = self.start(&["--allow-file-access-from-files", "--dump-dom"], &address(&outside));
        let title = page.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
        let title = title.unwrap_or_else(|| panic!("{page}"));
        let title =
            title.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&");
        let answers: Vec<String> =
            serde_json::from_str(&title).unwrap_or_else(|error| panic!("{error}: {title}"));
        assert_eq!(answers.len(), asked.len(), "{title}");
        answers
    }

    /// How wide the page's content is in frames of these widths, and how wide each frame is without its scroll bar.
    pub fn widths(&self, page: &Path, widths: &[u32]) -> Vec<(u32, u32)> {
        let expression =
            "(inner.querySelectorAll('details').forEach(d => d.open = true), \
             [inner.documentElement.scrollWidth, inner.documentElement.clientWidth, inner.title.length].join(' '))";
        let asked: Vec<(u32, &str)> = widths.iter().map(|width| (*width, expression)).collect();
        let numbers = |reported: &String| {
            let numbers: Vec<u32> = reported
                .split(' ')
                .map(|word| word.parse().unwrap_or_else(|_| panic!("{reported}")))
                .collect();
            assert!(numbers[2] > 0, "another page was measured: {reported}");
            (numbers[0], numbers[1])
        };
        self.ask_each(page, &asked).iter().map(numbers).collect()
    }

    /// A picture of the page's beginning.
    pub fn picture(&self, page: &Path, width: u32, height: u32, dark: bool) -> Picture {
        let file = self.folder.path().join("picture.png");
        let size = format!("--window-size={width},{height}");
        let screenshot = format!("--screenshot={}", file.display());
        // blink::mojom::PreferredColorScheme
        let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(!dark));
        self.start(&[&size, &screenshot, &scheme, "--hide-scrollbars"], &address(page));
        read(&file)
    }

    /// The page as it is printed: a PDF's bytes.
    pub fn printed(&self, page: &Path) -> Vec<u8> {
        let file = self.folder.path().join("page.pdf");
        self.start(
            &[&format!("--print-to-pdf={}", file.display()), "--no-pdf-header-footer"],
            &address(page),
        );
        std::fs::read(file).unwrap()
    }
}

fn address(page: &Path) -> String {
    let page: PathBuf = std::fs::canonicalize(page).unwrap();
    format!("file://{}", page.display())
}

fn read(file: &Path) -> Picture {
    let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(file).unwrap()));
    let mut reader = decoder.read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    let samples = info.color_type.samples();
    let pixels =
        bytes[..info.buffer_size()].chunks(samples).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    Picture { pixels, width: info.width, height: info.height }
}

impl Picture {
    /// The commonest colour, and the share of pixels of any other.
    pub fn drawn(&self) -> ([u8; 3], f64) {
        let mut counts = std::collections::HashMap::new();
        for pixel in &self.pixels {
            *counts.entry(*pixel).or_insert(0_usize) += 1;
        }
        let (ground, count) = counts.into_iter().max_by_key(|(_, count)| *count).unwrap();
        (ground, 1.0 - count as f64 / self.pixels.len() as f64)
    }

    /// How many colours there are.
    pub fn colours(&self) -> usize {
        self.pixels.iter().collect::<std::collections::HashSet<_>>().len()
    }
}
