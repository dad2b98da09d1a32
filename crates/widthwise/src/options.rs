//! Rules of all options. A value follows a space or `=`. An optional value follows `=` only, since the next word may be a
//! program. Lists are separated by commas, and may be given in parts. Values that may contain a comma are given once for each.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};

use crate::CommandLine;

/// The request in these words. A negative number is the value of the option before it, whose own error says what is allowed.
pub fn parse(words: &[OsString]) -> Result<CommandLine, clap::Error> {
    let takes_value = |option: &clap::Arg| option.get_long().is_some() && option.get_action().takes_values();
    let with_negative_numbers = |option: clap::Arg| match takes_value(&option) {
        true => option.allow_negative_numbers(true),
        false => option,
    };
    let mut command = CommandLine::command().mut_subcommands(|verb| verb.mut_args(with_negative_numbers));
    let mut matches = command.try_get_matches_from_mut(words)?;
    CommandLine::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// A correction, if `message` complains of a word that was meant as the value of the option before it.
pub fn hint(words: &[OsString], message: &str) -> Option<String> {
    let command = CommandLine::command();
    let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let verb = command.find_subcommand(words.get(1)?)?;
    let own = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    words[2..own.max(2)].windows(2).find_map(|pair| {
        let [option, value] = pair else { return None };
        let name = option.strip_prefix("--")?;
        let takes = verb.get_arguments().any(|one| one.get_long() == Some(name) && has_optional_value(one));
        let is_meant = takes && !value.is_empty() && !value.starts_with('-') && message.contains(value);
        is_meant.then(|| format!("the value of {option} follows an equals sign: {option}={value}"))
    })
}

/// An unknown option of the verb in these words.
fn unknown_option(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) if error.kind() == ErrorKind::UnknownArgument => {
            Some(option.as_str()).filter(|option| option.starts_with("--"))
        }
        _ => None,
    }
}

/// Leaves out the parser's tip to pass an unknown option as a value (`-- --csv`): no verb measures or reads a file with such a name, but
/// `exec` starts one.
pub fn leave_out_useless_tip(words: &[OsString], error: &mut clap::Error) {
    if unknown_option(error).is_some() && words.get(1).is_some_and(|verb| verb != "exec") {
        error.remove(ContextKind::Suggested);
    }
}

/// How the memory series, which `report` alone writes, is had after `compare`.
pub fn format_hint(words: &[OsString], error: &clap::Error) -> Option<String> {
    let option = unknown_option(error)?.split('=').next().unwrap_or_default();
    let is_written_later = words.get(1)? == "compare" && option == "--series";
    is_written_later
        .then(|| format!("after the campaign, `widthwise report {option}=FILE` writes this format"))
}

/// Whether an option's value is optional.
fn has_optional_value(option: &clap::Arg) -> bool {
    option.is_require_equals_set()
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction, Command, Parser};

    use super::*;

    fn verbs() -> Vec<Command> {
        let mut command = CommandLine::command();
        command.build();
        command.get_subcommands().cloned().collect()
    }

    /// Every visible option, with its verb.
    fn options() -> Vec<(String, Arg)> {
        let of = |verb: Command| -> Vec<(String, Arg)> {
            let shown = |one: &&Arg| one.get_long().is_some_and(|name| name != "help") && !one.is_hide_set();
            verb.get_arguments().filter(shown).map(|one| (verb.get_name().to_owned(), one.clone())).collect()
        };
        verbs().into_iter().flat_map(of).collect()
    }

    /// The value's name in the help.
    fn value_name(option: &Arg) -> Option<String> {
        let takes = option.get_action().takes_values();
        takes.then(|| option.get_value_names().unwrap_or_default().iter().map(|name| name.as_str()).collect())
    }

    #[test]
    fn an_option_has_one_name_in_lower_case_and_one_sentence_of_help() {
        for (verb, option) in options() {
            let name = option.get_long().unwrap();
            let shown = format!("{verb} --{name}");
            // Digits as in env's --argv0.
            let is_lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.chars().all(is_lower), "{shown}");
            assert!(option.get_all_aliases().unwrap_or_default().is_empty(), "{shown} has another name");
            assert_eq!(option.get_short(), None, "{shown}");
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.is_empty() && !help.ends_with('.'), "{shown}: {help}");
        }
    }

    #[test]
    fn a_value_has_a_name_in_capitals_and_an_optional_one_follows_an_equals_sign() {
        for (verb, option) in options() {
            let shown = format!("{verb} --{}", option.get_long().unwrap());
            let Some(name) = value_name(&option) else { continue };
            let is_capital = |c: char| c.is_ascii_uppercase() || "=,…".contains(c);
            assert!(name.chars().all(is_capital), "{shown} <{name}>");
            let least = option.get_num_args().map_or(1, |number| number.min_values());
            assert_eq!(least == 0, option.is_require_equals_set(), "{shown}");
        }
    }

    #[test]
    fn a_list_may_be_given_in_parts_and_nothing_else_twice() {
        for (verb, option) in options() {
            let shown = format!("{verb} --{}", option.get_long().unwrap());
            let Some(name) = value_name(&option) else { continue };
            let is_list = name.ends_with(",…") && name != "AXIS=VALUE,…";
            let repeats = matches!(option.get_action(), ArgAction::Append);
            assert!(!is_list || repeats, "{shown} <{name}> is a list");
            // The help of an option that may be repeated and is not a list says so.
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            assert_eq!(repeats && !is_list, help.contains("; once for each"), "{shown}: {help}");
        }
    }

    #[test]
    fn an_option_that_several_verbs_have_is_the_same_in_each() {
        let all = options();
        for (verb, option) in &all {
            for (other, same) in all.iter().filter(|(_, other)| other.get_long() == option.get_long()) {
                let name = option.get_long().unwrap();
                // `compare --heap` takes the number of recordings; `explain --heap` reads them.
                if name == "heap" {
                    continue;
                }
                let form = |one: &Arg| (value_name(one), one.is_require_equals_set());
                assert_eq!(form(option), form(same), "--{name} of {verb} and of {other}");
            }
        }
    }

    #[test]
    fn the_help_of_a_command_says_whether_a_shell_runs_it() {
        for (verb, option) in options() {
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            let shown = format!("{verb} --{}: {help}", option.get_long().unwrap());
            match value_name(&option).as_deref() {
                Some("SH") => assert!(help.to_lowercase().contains("shell"), "{shown}"),
                Some("COMMAND") => assert!(help.contains("without a shell"), "{shown}"),
                _ => {}
            }
        }
    }

    #[test]
    fn every_verb_has_examples_that_its_parser_accepts() {
        for verb in verbs() {
            let help = verb.clone().render_long_help().to_string();
            let begin = format!("  widthwise {}", verb.get_name());
            let examples: Vec<&str> = help
                .lines()
                .skip_while(|line| *line != "Examples:")
                .skip(1)
                .take_while(|line| line.starts_with("  "))
                .collect();
            assert!(examples.len() > 1, "{}: {help}", verb.get_name());
            for line in examples {
                assert!(line.starts_with(&begin), "{line}");
                let words = shell_words::split(line.split(" # ").next().unwrap()).unwrap();
                assert!(CommandLine::try_parse_from(&words).is_ok(), "{line}");
            }
        }
    }
}
