//! Where each variant runs: on this machine, under an emulator of its processor, or on another kernel.

use std::path::Path;

use widthwise_experiment::model::{Experiment, Variant};
use widthwise_experiment::Kernel;
use widthwise_machine::package::Packages;
use widthwise_machine::{abi, elf, qemu, Unavailable};
use widthwise_measure::kernel_image::KernelImage;
use widthwise_measure::plan::Machine;
use widthwise_measure::run::launch_spec::LaunchSpec;

use crate::failure::Failure;
use crate::progress::Progress;

/// The machine of each variant, in their order, or why there is none. Kernels are fetched and unpacked below `root`.
pub fn place(
    experiment: &Experiment,
    root: &Path,
    progress: &Progress,
) -> Result<Vec<Result<Machine, String>>, Failure> {
    let packages = Packages::here();
    let mut kernels: Vec<(&Kernel, KernelImage)> = Vec::new();
    let mut machines = Vec::new();
    for variant in &experiment.variants {
        if !variant.kernel.is_emulated() {
            machines.push(of_processor(variant, &packages));
            continue;
        }
        if let Some(abi) = variant.abi.filter(|abi| abi.is_foreign) {
            let kernel = &variant.kernel;
            machines.push(Err(format!("the kernel {kernel} does not start {} programs", abi.name)));
            continue;
        }
        let emulator = match qemu::system(&packages) {
            Ok(emulator) => emulator,
            Err(unavailable) => {
                machines.push(Err(reason(&unavailable)));
                continue;
            }
        };
        if !kernels.iter().any(|(kernel, _)| *kernel == &variant.kernel) {
            let image = KernelImage::place(&variant.kernel, root, &emulator, &mut |text| progress.say(text));
            let image = image.map_err(|error| Failure::request(format!("kernel: {error}")))?;
            kernels.extend(image.map(|image| (&variant.kernel, image)));
        }
        let image = kernels.iter().find(|(kernel, _)| *kernel == &variant.kernel);
        machines.push(image.map(|(_, image)| Machine::Guest(image.clone())).ok_or_else(String::new));
    }
    Ok(machines)
}

fn of_processor(variant: &Variant, packages: &Packages) -> Result<Machine, String> {
    let foreign = variant.abi.and_then(|abi| abi::find(abi.name)).filter(|abi| abi.is_foreign());
    let Some(abi) = foreign else { return Ok(Machine::Native) };
    let emulator = qemu::user(abi, packages).map_err(|unavailable| reason(&unavailable))?;
    Ok(Machine::User { abi: abi.name, emulator, sysroot: abi.sysroot() })
}

/// The emulator under which a native program's instructions are counted, beside programs of other processors.
pub fn beside(start: &LaunchSpec) -> Result<Machine, String> {
    let facts = elf::read(&start.file).map_err(|error| error.to_string())?;
    let abi = facts.abi().ok_or_else(|| format!("{} is of an unknown ABI", start.file.display()))?;
    let emulator = qemu::user(abi, &Packages::here()).map_err(|unavailable| reason(&unavailable))?;
    Ok(Machine::User { abi: abi.name, emulator, sysroot: None })
}

/// Why a machine does not start a finished program.
pub fn refusal(machine: &Machine, start: &LaunchSpec) -> Option<String> {
    let Machine::Guest(kernel) = machine else { return None };
    let abi = elf::read(&start.file).ok().and_then(|facts| facts.abi())?;
    kernel.refuses(abi.name)
}

fn reason(unavailable: &Unavailable) -> String {
    match &unavailable.fix {
        Some(fix) => format!("{unavailable}; {fix}"),
        None => unavailable.to_string(),
    }
}
