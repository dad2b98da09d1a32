//! The compiler of each variant: this machine's own, or the cross compiler of the same version for another processor.

use std::collections::BTreeMap;

use widthwise_experiment::model::{Experiment, Variant};
use widthwise_machine::abi;
use widthwise_machine::compiler::{self, Compiler};
use widthwise_machine::package::Packages;

/// The compilers of a campaign.
pub struct Toolchains<'a> {
    /// Those of this machine.
    pub native: &'a [Compiler],
    /// By ABI and by the name of the compiler of this machine that has the same version.
    cross: BTreeMap<(&'static str, String), Result<Compiler, String>>,
}

impl<'a> Toolchains<'a> {
    /// The compilers that an experiment's variants need.
    pub fn of(experiment: &Experiment, native: &'a [Compiler]) -> Toolchains<'a> {
        let mut toolchains = Toolchains { native, cross: BTreeMap::new() };
        for variant in &experiment.variants {
            let Some(abi) = variant.abi.and_then(|abi| abi::find(abi.name)).filter(|abi| abi.is_foreign())
            else {
                continue;
            };
            let Ok(own) = toolchains.native(variant) else { continue };
            toolchains.cross.entry((abi.name, own.name.clone())).or_insert_with(|| {
                compiler::cross(own, abi, &Packages::here()).map_err(|unavailable| match &unavailable.fix {
                    Some(fix) => format!("{unavailable}; {fix}"),
                    None => unavailable.to_string(),
                })
            });
        }
        toolchains
    }

    /// The compiler of a variant. The error is a sentence.
    pub fn chosen(&self, variant: &Variant) -> Result<&Compiler, String> {
        let own = self.native(variant)?;
        match variant.abi.filter(|abi| abi.is_foreign) {
            Some(abi) => match self.cross.get(&(abi.name, own.name.clone())) {
                Some(Ok(compiler)) => Ok(compiler),
                Some(Err(reason)) => Err(reason.clone()),
                None => Err(format!("there is no compiler for {abi}")),
            },
            None => Ok(own),
        }
    }

    fn native(&self, variant: &Variant) -> Result<&'a Compiler, String> {
        match &variant.compiler {
            Some(name) => compiler::find(self.native, name).map_err(|error| error.to_string()),
            None => compiler::default(self.native)
                .ok_or_else(|| "there is no C compiler here; apt-get install gcc g++".to_owned()),
        }
    }
}
