//! What a program without the engine of SQL says.

use crate::support::Sandbox;

#[test]
fn conditions_name_the_build_that_has_them() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", "a\n1\n");
    for flag in [["--where", "a > 0"], ["--select", "a"]] {
        let run = sandbox.run(&[&["load", "a.csv", "--into", "store"][..], &flag].concat());
        run.fails(1, &["--where and --select", "built without", "feature sql"]);
    }
}
