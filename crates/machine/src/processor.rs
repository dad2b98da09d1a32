//! The processor, as far as code that is built for it depends on it.

use std::path::Path;
use std::sync::OnceLock;

use crate::sysfs::text;

/// What a compiler finds here for `-march=native`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processor {
    /// Its maker and model.
    pub model: String,
    /// The instructions that it has and the kernel allows.
    pub features: String,
}

/// Lines of `/proc/cpuinfo` with maker and model, on x86 and Arm.
const MODEL: [&str; 6] = ["vendor_id", "cpu family", "model", "model name", "CPU implementer", "CPU part"];
const FEATURES: [&str; 2] = ["flags", "Features"];

impl Processor {
    /// The processor of this machine.
    pub fn here() -> &'static Processor {
        static HERE: OnceLock<Processor> = OnceLock::new();
        HERE.get_or_init(|| Processor::at(Path::new("/")))
    }

    fn at(root: &Path) -> Processor {
        let cpuinfo = text(root.join("proc/cpuinfo")).unwrap_or_default();
        // An empty line ends the first CPU.
        let lines = cpuinfo.lines().take_while(|line| !line.trim().is_empty());
        let mut processor = Processor::default();
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let name = name.trim();
            if MODEL.contains(&name) {
                processor.model += &format!("{name}:{value}\n");
            } else if FEATURES.contains(&name) {
                processor.features += value.trim();
            }
        }
        processor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maker_model_and_features_are_those_of_the_first_cpu() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let cpu = |number: u32| {
            format!("processor\t: {number}\nvendor_id\t: Maker\nmodel name\t: X {number}\ncpu MHz\t: 9{number}\nflags\t\t: fpu avx\n\n")
        };
        std::fs::write(root.path().join("proc/cpuinfo"), cpu(0) + &cpu(1)).unwrap();
        let processor = Processor::at(root.path());
        assert_eq!(processor.model, "vendor_id: Maker\nmodel name: X 0\n");
        assert_eq!(processor.features, "fpu avx");
        assert_eq!(Processor::at(Path::new("/nowhere")), Processor::default());
    }
}
