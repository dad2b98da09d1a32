//! Variants on emulated machines: who takes part in their rounds, and what a reader must know of them.

use widthwise_anatomy::code;
use widthwise_archive::ArchiveError;
use widthwise_experiment::cache_model::{CacheGeometry, Geometry, TlbGeometry};
use widthwise_experiment::metric::{Family, ON_MACHINE};
use widthwise_experiment::model::Experiment;
use widthwise_experiment::{CacheModel, Metric, Role};
use widthwise_machine::compiler;
use widthwise_machine::core_caches::{self, CacheShape};
use widthwise_measure::passes::emulated_machine::operations::Operations;
use widthwise_measure::passes::emulated_machine::options::Options;
use widthwise_measure::passes::emulated_machine::{self, EmulatedMachine};
use widthwise_measure::plan::{Machine, Participant, Plan};
use widthwise_measure::rounds::{End, RoundsError};
use widthwise_measure::run::result::RunError;
use widthwise_measure::run::runner::Runner;
use widthwise_report::format::counted;
use widthwise_verdict::FEWEST_PAIRS;

use crate::compare::recorder::Recorder;
use crate::machines;
use crate::preparation::ready::Ready;

/// What a reader must know of how emulated variants were measured.
pub fn remarks(experiment: &Experiment, variants: &[Ready]) -> Vec<String> {
    let mut remarks = Vec::new();
    if is_counted(experiment) && variants.iter().any(|ready| matches!(ready.machine, Machine::Guest(_))) {
        remarks.push(
            "other kernels ran in an emulated machine (QEMU): a plugin counted the instructions, user and kernel apart by \
             address; page faults and max RSS are those of the guest's rusage; its time is no time and is not shown"
                .to_owned(),
        );
    }
    if experiment.kvm {
        remarks.push(
            "programs on other kernels were timed in boots of their own under KVM: wall time by the guest's clock, from execve to \
             wait4, and CPU time by its rusage; virtualization has a part in both"
                .to_owned(),
        );
    }
    if experiment.variants.iter().any(|variant| variant.abi.is_some_and(|abi| abi.is_foreign)) {
        remarks.push(
            "programs of other processors ran under QEMU on this kernel: a plugin counted their instructions; their time and \
             memory are QEMU's and are not shown"
                .to_owned(),
        );
    }
    let wants = |family: Family| experiment.metrics.iter().any(|metric| metric.family == family);
    if wants(Family::MachineOperation) {
        remarks.push(
            "instructions of an operation are those of its loop between two markers: what 2 n iterations have more than n (the \
             median of five differences), less the empty loop; stretches in which the kernel's clock ticked are made again"
                .to_owned(),
        );
    }
    if wants(Family::InstructionClass) {
        remarks.push(
            "classes of instructions are those of `explain`, by the bytes of each instruction that the plugin counted; they sum \
             to user and to kernel instructions"
                .to_owned(),
        );
    }
    if wants(Family::InstructionClass) && uses(experiment, "armhf") {
        let text =
            "armhf: instructions are not divided by class: ARM and Thumb instructions have the same bytes";
        remarks.push(text.to_owned());
    }
    if wants(Family::CacheModel) {
        remarks.push(match geometry(experiment.cache_model) {
            Ok(geometry) => format!(
                "misses of caches and TLBs are those of a model in the plugin, and of no processor ({}: {}); least recently used \
                 out first, nothing fetched ahead; user pages of 4 KiB, the kernel's of 2 MiB",
                experiment.cache_model.name(),
                geometry.text()
            ),
            Err(reason) => reason,
        });
    }
    remarks
}

fn uses(experiment: &Experiment, abi: &str) -> bool {
    experiment.variants.iter().any(|variant| variant.abi.is_some_and(|own| own.name == abi))
}

/// The caches that an emulated machine gets, or a sentence.
fn geometry(model: CacheModel) -> Result<Geometry, String> {
    if let CacheModel::Named(row) = model {
        return Ok(row.geometry);
    }
    let core = core_caches::read().map_err(|reason| {
        let names: Vec<&str> = CacheModel::all().skip(1).map(CacheModel::name).collect();
        format!(
            "this machine's caches are not known: {reason}; --cache-model={} names others",
            names.join(" or ")
        )
    })?;
    let cache = |shape: CacheShape| CacheGeometry { bytes: shape.bytes, ways: shape.ways, line: shape.line };
    let tlb = |(entries, ways): (u32, u32)| TlbGeometry { entries, ways };
    Ok(Geometry {
        l1i: cache(core.l1i),
        l1d: cache(core.l1d),
        ll: cache(core.last),
        itlb: tlb(core.itlb),
        dtlb: tlb(core.dtlb),
    })
}

/// The names of the classes that `explain` uses.
fn classify(abi: &str, instructions: &[&[u8]]) -> Result<Vec<&'static str>, String> {
    let classes = code::classes(abi, instructions).map_err(|error| error.to_string())?;
    let classes =
        classes.ok_or_else(|| format!("the class of {abi} instructions cannot be told from their bytes"))?;
    Ok(classes.into_iter().map(|class| class.name()).collect())
}

/// Whether some metric is one of the rounds on emulated machines.
fn is_counted(experiment: &Experiment) -> bool {
    let of_machine = |metric: &Metric| metric.is_of_machine() || ON_MACHINE.contains(&metric.name);
    experiment.has_emulated() && experiment.metrics.iter().any(of_machine)
}

/// The operations of the micro suite that are counted on other kernels.
pub fn operations(experiment: &Experiment) -> Option<Operations> {
    let of_operations = |metric: &&Metric| metric.family == Family::MachineOperation;
    let metrics: Vec<Metric> = experiment.metrics.iter().filter(of_operations).copied().collect();
    (!metrics.is_empty()).then_some(Operations { metrics })
}

/// Makes the rounds on emulated machines, unless an earlier session has.
pub fn count(
    experiment: &Experiment,
    plan: &Plan,
    everyone: Vec<Participant>,
    runner: &mut Runner,
    recorder: &mut Recorder,
) -> Result<End, RoundsError<ArchiveError>> {
    let metrics: Vec<Metric> =
        experiment.metrics.iter().copied().filter(|metric| metric.is_of_machine()).collect();
    if !is_counted(experiment) || recorder.has_emulated(&metrics) {
        return Ok(End::Enough);
    }
    let mut participants = Vec::new();
    for mut participant in everyone {
        if !recorder.is_compared(&participant.name) {
            continue;
        }
        if participant.machine == Machine::Native {
            match machines::beside(&participant.start) {
                Ok(machine) => participant.machine = machine,
                Err(reason) => {
                    let text = format!("{}: instructions were not counted: {reason}", participant.name);
                    recorder.archive.warn(&text).map_err(RoundsError::Observer)?;
                    continue;
                }
            }
        }
        participants.push(participant);
    }
    let has = |role| participants.iter().any(|participant| participant.role == role);
    if !has(Role::Baseline) || !has(Role::Control) {
        return Ok(End::Enough);
    }
    let compilers = compiler::discover_for(&[]);
    let compiler = compiler::default(&compilers).ok_or_else(|| {
        let reason =
            "there is no C compiler here, which builds the plugin of QEMU: apt-get install gcc libc6-dev";
        RoundsError::Run(RunError::Tool(reason.to_owned()))
    })?;
    recorder.says(&format!(
        "counting on emulated machines: {} in two rounds or more; Ctrl-C leaves them out",
        counted(participants.len(), "run")
    ));
    let plan = Plan {
        participants,
        seed: plan.seed,
        order: plan.order,
        layouts: 0,
        first_round: recorder.archive.next_round(),
        warmup: 0,
        cpus: Vec::new(),
        concurrent: false,
        limits: plan.limits,
        check: plan.check.clone(),
        folder: plan.folder.clone(),
        epoch: plan.epoch,
    };
    let wants = |family: Family| metrics.iter().any(|metric| metric.family == family);
    let caches = wants(Family::CacheModel).then(|| geometry(experiment.cache_model)).transpose();
    let caches = caches.map_err(|reason| RoundsError::Run(RunError::Tool(reason)))?;
    let machine = EmulatedMachine {
        plan: &plan,
        first_round: plan.first_round,
        most_rounds: FEWEST_PAIRS,
        compiler,
        options: Options {
            classify: wants(Family::InstructionClass).then_some(&classify),
            caches: caches.map(|geometry| geometry.options()),
            operations: operations(experiment),
        },
    };
    let end = emulated_machine::count(&machine, runner, recorder)?;
    if end == End::Enough && recorder.why.is_none() {
        recorder.why = Some("every variant was counted".to_owned());
    }
    Ok(end)
}
