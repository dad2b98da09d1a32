//! Control groups: which limit refused a task, and what campaigns that were killed have left.

use std::path::PathBuf;
use std::process::Command;

use crate::laboratory::outcomes::skipped;
use crate::laboratory::{output_of, unfolded, Laboratory};

/// An empty control group in the group of this process, of a hierarchy that limits tasks, if one can be made: removed at the end.
struct Group(PathBuf);

impl Group {
    fn make(name: &str) -> Option<Group> {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
        let path = |start: &str| {
            own.lines().find_map(|line| line.split_once(start)).map(|(_, path)| path.to_owned())
        };
        let of_pids = path(":pids:/").map(|path| PathBuf::from("/sys/fs/cgroup/pids").join(path));
        let unified = path("0::/").map(|path| PathBuf::from("/sys/fs/cgroup").join(path));
        let folder = of_pids
            .into_iter()
            .chain(unified)
            .find(|folder| folder.join("cgroup.procs").exists())?
            .join(name);
        std::fs::create_dir(&folder).ok().map(|()| Group(folder))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The kernel counts the refused task in the program's own group, whose limit is higher.
#[test]
fn the_limit_of_a_group_that_contains_the_programs_is_the_one_that_was_reached() {
    let group = Group::make(&format!("limit-of-tests-{}", std::process::id()))
        .filter(|group| std::fs::write(group.0.join("pids.max"), "40").is_ok());
    let Some(group) = group else {
        return skipped("no control group can be given a limit on tasks here");
    };
    let lab = Laboratory::new();
    lab.write(
        "many.c",
        "#include <pthread.h>\n#include <unistd.h>\n\
         static void *rest(void *none) { usleep(20000); return none; }\n\
         int main(void) { pthread_t threads[60]; int count = 0;\n\
         while (count < 60 && !pthread_create(&threads[count], 0, rest, 0)) count++;\n\
         while (count > 0) pthread_join(threads[--count], 0); }\n",
    );
    lab.gcc("-O1 -pthread many.c -o many");
    let plain = lab.command("compare ./many --metric wall --rounds 1 --warmup 0");
    let mut inside = Command::new("sh");
    let enter = format!("echo $$ > {}/cgroup.procs; exec \"$0\" \"$@\"", group.0.display());
    inside.arg("-c").arg(enter).arg(plain.get_program()).args(plain.get_args()).current_dir(lab.path(""));
    let output = output_of(&mut inside);
    let text = unfolded(&format!("{}{}", output.stdout, output.stderr));
    let expected =
        format!("reached the limit of 40 tasks at once, that of the control group {}", group.0.display());
    assert!(text.contains(&expected) && !text.contains("8192"), "{output:?}");
}

#[test]
fn the_group_of_a_campaign_that_was_killed_is_removed_by_the_next() {
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let own = std::process::id();
    let names = [
        format!("widthwise-{}-0", ended.id()),
        format!("widthwise-{own}-0"),
        format!("another-{}-0", ended.id()),
    ];
    let [Some(left_over), Some(living), Some(another)] = names.map(|name| Group::make(&name)) else {
        return skipped("no control group can be made here");
    };
    let lab = Laboratory::new();
    let output = lab.widthwise("compare /bin/true --metric wall --rounds 1 --warmup 0");
    assert_eq!(output.status, Some(0), "{output:?}");
    assert!(!left_over.0.exists(), "{}", left_over.0.display());
    assert!(living.0.exists() && another.0.exists());
}
