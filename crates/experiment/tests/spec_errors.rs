//! Every error of a spec file, with its exact message.

use widthwise_experiment::spec::parse;
use widthwise_experiment::Axis;

#[track_caller]
fn refused(spec: &str, message: &str) {
    let error = parse(spec, "lua/widthwise.toml").expect_err("this spec file is wrong");
    assert_eq!(error.to_string(), format!("lua/widthwise.toml:{message}"));
}

#[test]
fn a_file_that_is_not_toml_names_the_line() {
    refused("[program]\nname = \n", "2: string values must be quoted, expected literal string");
    refused("[program\n", "1: unclosed table, expected `]`");
    refused("[program]\nname = \"lua\n", "2: invalid basic string, expected `\"`");
}

#[test]
fn a_repeated_key_is_refused_at_its_second_line() {
    refused("[run]\nstdin = \"a\"\nstdin = \"b\"\n", "3: \"stdin\" is given twice; keep one of the two");
    refused("[axes]\nabi = [\"x32\"]\n[run]\n[axes]\n", "4: \"axes\" is given twice; keep one of the two");
    refused("[env.tuned]\n\n[env.tuned]\n", "3: \"tuned\" is given twice; keep one of the two");
}

#[test]
fn unknown_and_misspelt_sections_have_different_errors() {
    refused("\n[mesure]\nrounds = 3\n", "2: unknown key \"mesure\" in the file; did you mean \"measure\"?");
    refused(
        "[machine]\n",
        "1: unknown key \"machine\" in the file; there is program, axes, flags, env, exclude, variant, run, measure, \
         output",
    );
}

#[test]
fn an_unknown_key_names_its_section_and_its_fix() {
    refused("[program]\nnmae = \"x\"\n", "2: unknown key \"nmae\" in [program]; did you mean \"name\"?");
    refused("[run]\nno-aslr = true\n", "2: unknown key \"no-aslr\" in [run]; did you mean \"no_aslr\"?");
    refused(
        "[measure]\nprecison = \"1%\"\n",
        "2: unknown key \"precison\" in [measure]; did you mean \"precision\"?",
    );
    refused(
        "[output]\ncolour = true\n",
        "2: unknown key \"colour\" in [output]; there is check, files, filter, allow_different",
    );
    refused(
        "[flags.fast]\ncflag = \"-O3\"\n",
        "2: unknown key \"cflag\" in [flags.fast]; did you mean \"cflags\"?",
    );
}

#[test]
fn a_key_in_the_wrong_section_names_the_right_one() {
    refused("[run]\nrounds = 3\n", "2: unknown key \"rounds\" in [run]; it belongs to [measure]");
    for axis in Axis::ALL {
        let message = format!("2: unknown key \"{axis}\" in [run]; it belongs to [axes]");
        refused(&format!("[run]\n{axis} = \"x\"\n"), &message);
    }
    refused("source = \"a.c\"\n", "1: unknown key \"source\" in the file; it belongs to [program]");
}

#[test]
fn an_unknown_axis_is_refused_wherever_axes_are_named() {
    let message = "unknown axis \"alocator\"; did you mean \"allocator\"?";
    refused("[axes]\nabi = [\"x32\"]\nalocator = [\"glibc\"]\n", &format!("3: {message}"));
    refused("[[exclude]]\nalocator = \"glibc\"\n", &format!("2: {message}"));
    refused("[[variant]]\nname = \"x\"\nalocator = \"glibc\"\n", &format!("3: {message}"));
    refused(
        "[axes]\npages = [\"4k\"]\n",
        "2: unknown axis \"pages\"; there is abi, compiler, flags, allocator, thp, env, kernel",
    );
}

#[test]
fn an_unknown_value_of_an_axis_is_refused_on_its_own_line() {
    refused(
        "[axes]\nabi = [\n  \"x32\",\n  \"x86_64\",\n]\n",
        "4: unknown ABI \"x86_64\"; did you mean \"x86-64\"?",
    );
    refused(
        "[axes]\nabi = \"sparc\"\n",
        "2: unknown ABI \"sparc\"; there is x86-64, x32, i386, ppc64, ppc, arm64, armhf, ppc64el, riscv64, s390x",
    );
    refused(
        "[axes]\nkernel = [\"6.1\"]\n",
        "2: unknown kernel \"6.1\"; there is host, debian:amd64, debian:686-pae, debian:amd64+x32 (a bzImage is \
         named by a path with a \"/\")",
    );
    refused(
        "[axes]\nallocator = [\"jemaloc\"]\n",
        "2: unknown allocator \"jemaloc\"; did you mean \"jemalloc\"?",
    );
    refused("[axes]\nthp = [\"nevr\"]\n", "2: unknown setting of thp \"nevr\"; did you mean \"never\"?");
    refused("[[exclude]]\nabi = \"x23\"\n", "2: unknown ABI \"x23\"; did you mean \"x32\"?");
    refused(
        "[[variant]]\ncompiler = \"all\"\n",
        "2: compiler \"all\": it stands for every compiler; here goes one",
    );
    refused(
        "[axes]\nflags = [\"-O2\\n-O3\"]\n",
        "2: value \"-O2\\n-O3\": it has a control character, such as the end of a line",
    );
}

#[test]
fn values_that_are_there_twice_are_refused() {
    refused("[axes]\nabi = [\"x32\", \"i386\",\n \"x32\"]\n", "3: abi \"x32\" is named twice");
    refused("[axes]\nflags = [\"-O2\", \"-O2\"]\n", "2: flags \"-O2\" is named twice");
    refused("[measure]\nmetrics = [\"cpu\", \"cpu\"]\n", "2: metric \"cpu\" is named twice");
    refused("[run]\ninputs = [\"a\", \"a\"]\n", "2: file \"a\" is named twice");
}

#[test]
fn all_stands_alone() {
    refused("[axes]\ncompiler = [\"all\", \"gcc-12\"]\n", "2: \"all\" means every compiler and stands alone");
    refused("[axes]\ncompiler = [\"gcc-12\", \"all\"]\n", "2: \"all\" means every compiler and stands alone");
    refused("[measure]\nmetrics = [\"cpu\", \"all\"]\n", "2: \"all\" means every metric and stands alone");
}

#[test]
fn empty_lists_and_values_are_refused() {
    refused("[axes]\nabi = []\n", "2: \"abi\" is empty; name something or leave the key out");
    refused("[measure]\nmetrics = []\n", "2: \"metrics\" is empty; name something or leave the key out");
    refused(
        "[axes]\nflags = [\"\"]\n",
        "2: a value of axis \"flags\" is empty; name something or leave it out",
    );
    refused("[run]\nstdin = \"\"\n", "2: a path of \"stdin\" is empty; name a file or leave it out");
    refused(
        "[run]\n[[exclude]]\n",
        "2: [[exclude]] is empty; name the axes of the points to leave out, such as abi = \"x32\"",
    );
}

#[test]
fn an_unknown_metric_is_refused() {
    refused("[measure]\nmetrics = [\"max_rs\"]\n", "2: unknown metric \"max_rs\"; did you mean \"max_rss\"?");
}

#[test]
fn an_unknown_placeholder_names_its_own_line_of_a_long_command() {
    refused(
        "[program]\nbuild = '''\n./configure\nmake -j{job}\n'''\n",
        "4: unknown placeholder {job}; did you mean {jobs}? (for the text itself, write {{job}})",
    );
    refused(
        "[program]\nrun = \"{bin}\"\n",
        "2: unknown placeholder {bin}; there is {build}, {source}, {binary}, {work}, {variant}, {abi}, {processes}, {index}, \
         {events}, {first} (for the text itself, write {{bin}})",
    );
}

#[test]
fn a_placeholder_of_another_stage_is_refused() {
    let known =
        "there is {build}, {source}, {binary}, {work}, {variant}, {abi}, {processes}, {index}, {events}, {first}";
    refused("[program]\nrun = \"{cc} x\"\n", &format!("2: {{cc}} means nothing in a run command; {known}"));
    refused("[run]\nsetup = \"{jobs}\"\n", &format!("2: {{jobs}} means nothing in a run command; {known}"));
    refused("[run]\nteardown = \"{ar}\"\n", &format!("2: {{ar}} means nothing in a run command; {known}"));
    refused("[flags.x]\ntrain = \"{cc}\"\n", &format!("2: {{cc}} means nothing in a run command; {known}"));
}

#[test]
fn the_error_of_a_wrong_type_names_the_expected_one() {
    refused("[program]\nname = 3\n", "2: \"name\" must be text in quotation marks, not a whole number");
    refused("[run]\nno_aslr = \"yes\"\n", "2: \"no_aslr\" must be true or false, not text");
    refused("[measure]\nrounds = \"30\"\n", "2: \"rounds\" must be a whole number, not text");
    refused("[measure]\nrounds = 1.5\n", "2: \"rounds\" must be a whole number, not a fraction");
    refused(
        "[run]\ntimeout = 60\n",
        "2: \"timeout\" must be a duration in quotation marks, such as \"90s\", not a whole number",
    );
    refused(
        "[measure]\nprecision = 1\n",
        "2: \"precision\" must be a percentage, such as \"1%\" or 0.01, not a whole number",
    );
    refused(
        "[axes]\nabi = true\n",
        "2: \"abi\" must be a list of texts, such as [\"a\", \"b\"], not true or false",
    );
    refused(
        "[axes]\nabi = [\"x32\", 1]\n",
        "2: \"abi\" must be a list of nothing but texts, not a whole number",
    );
    refused("program = \"lua\"\n", "1: \"program\" must be a table, not text");
    refused(
        "[exclude]\nabi = \"x32\"\n",
        "1: \"exclude\" must be a list of tables, each under its own double brackets, not a table",
    );
    refused(
        "variant = [1]\n",
        "1: \"variant\" must be a list of tables, each under its own double brackets, not a whole number",
    );
    refused(
        "[env.tuned]\nMALLOC_ARENA_MAX = 1\n",
        "2: \"MALLOC_ARENA_MAX\" must be text in quotation marks, not a whole number",
    );
    refused("[run]\nstdin = 2026-11-21\n", "2: \"stdin\" must be text in quotation marks, not a date");
}

#[test]
fn the_error_of_a_bad_duration_or_percentage_has_an_example() {
    refused(
        "[run]\ntimeout = \"60x\"\n",
        "2: \"60x\" is no duration; write it like \"90s\", \"5m\", \"1h30m\" or \"250ms\"",
    );
    refused(
        "[measure]\nmax_time = \"-5m\"\n",
        "2: \"-5m\" is no duration; write it like \"90s\", \"5m\", \"1h30m\" or \"250ms\"",
    );
    refused(
        "[measure]\nprecision = \"one%\"\n",
        "2: \"one%\" is no percentage; write it like \"1%\" or 0.01",
    );
    refused("[measure]\nconfidence = nan\n", "2: \"nan\" is no percentage; write it like \"1%\" or 0.01");
    refused(
        "[measure]\nequal_within = -0.01\n",
        "2: \"-0.01\" is no percentage; write it like \"1%\" or 0.01",
    );
    refused("[measure]\nprecision = -0.01\n", "2: \"-0.01\" is no percentage; write it like \"1%\" or 0.01");
}

#[test]
fn a_percentage_without_its_sign_is_refused_with_the_number_that_was_given() {
    let is = "has no \"%\" and would be a fraction, which is less than 1; write";
    for key in ["confidence", "precision", "equal_within"] {
        for (given, shown, fix) in [
            ("\"95\"", "95", "\"95%\""),
            ("\"90\"", "90", "\"90%\""),
            ("\"2.50\"", "2.50", "\"2.5%\""),
            ("\"1.0\"", "1.0", "\"1%\""),
            ("\"100\"", "100", "a percentage like \"1%\", or a fraction like 0.01"),
        ] {
            let message = format!("2: {shown} {is} {fix}");
            refused(&format!("[measure]\n{key} = {given}\n"), &message);
        }
    }
}

#[test]
fn counts_keep_to_their_range() {
    refused("[measure]\nrounds = -3\n", "2: \"rounds\" cannot be negative: -3");
    refused("[measure]\nwarmup = -1\n", "2: \"warmup\" cannot be negative: -1");
    refused("[measure]\nrounds = 5000000000\n", "2: \"rounds\" must be from 0 to 4294967295, not 5000000000");
    refused("[run]\nexit_status = 256\n", "2: \"exit_status\" must be from 0 to 255, not 256");
    refused("[run]\nexit_status = -1\n", "2: \"exit_status\" cannot be negative: -1");
    refused(
        "[measure]\nseed = 0xfffffffffffffffff\n",
        "2: \"seed\" must be from 0 to 18446744073709551615, not 0xfffffffffffffffff",
    );
}

#[test]
fn the_error_of_an_unknown_word_lists_the_known_ones() {
    refused(
        "[measure]\nestimator = \"mean\"\n",
        "2: unknown estimator \"mean\"; there is paired, ten-run-trim",
    );
    refused("[output]\ncheck = \"of\"\n", "2: unknown kind of check \"of\"; did you mean \"off\"?");
    refused(
        "[run]\ncpus = \"0-\"\n",
        "2: cpus \"0-\": \"\" is no CPU number; write \"auto\", \"any\" or a list like \"0,2-3\"",
    );
}

#[test]
fn an_invalid_source_is_refused() {
    refused("[program]\nsource = \"\"\n", "2: source \"\": a file, a folder or debian:PACKAGE goes there");
    refused(
        "[program]\nsource = \"debian:SQLite\"\n",
        "2: source \"debian:SQLite\": a Debian source package's name has two or more of a-z, 0-9, +, - and ., a letter \
         or digit first",
    );
    refused(
        "[program]\nsource = \"debian:sqlite3=\"\n",
        "2: source \"debian:sqlite3=\": a Debian version begins with a digit and has letters, digits, ., +, -, ~ and :",
    );
}

#[test]
fn names_that_would_be_taken_for_something_else_are_refused() {
    refused("[flags.lto]\n", "1: flag set \"lto\": this name is built in; choose another");
    refused(
        "[flags.\"-O2\"]\n",
        "1: flag set \"-O2\": a name that begins with \"-\" would be taken for options",
    );
    refused(
        "[env.default]\n",
        "1: environment \"default\": this name is built in and sets nothing; choose another",
    );
    refused("[env.\"\"]\n", "1: environment \"\": it is empty");
    refused("[env.x]\n\"A=B\" = \"\"\n", "2: variable \"A=B\": a variable's name cannot contain \"=\"");
    refused("[program.binaries]\n\" x\" = \"a\"\n", "2: binary \" x\": it begins or ends with a space");
    refused("[program.binaries]\nx = \"\"\n", "2: a path of \"x\" is empty; name a file or leave it out");
}

#[test]
fn a_nul_character_is_refused() {
    refused(
        "[run]\nstdin = \"a\\u0000b\"\n",
        "2: \"stdin\" contains a NUL character, which cannot be handed to a program",
    );
}

#[test]
fn the_first_error_of_a_file_is_reported() {
    refused(
        "[run]\nzzz = 1\naaa = 2\n[axes]\nbbb = 3\n",
        "2: unknown key \"zzz\" in [run]; there is stdin, directory, inputs, environment, setup, teardown, timeout, boot_timeout, \
         exit_status, cpus, no_aslr, concurrent, exit_stop",
    );
}

#[test]
fn lines_are_counted_the_same_with_either_end_of_line() {
    refused("[run]\r\n\r\nrounds = 3\r\n", "3: unknown key \"rounds\" in [run]; it belongs to [measure]");
}

#[test]
fn a_metrics_name_with_a_character_that_misleads_is_refused() {
    refused(
        "[measure.reports]\n\"p99\\u202eus\" = \"count\"\n",
        "2: metric \"p99\\u{202e}us\": it has an invisible character, or one that changes the direction of \
         text",
    );
}
